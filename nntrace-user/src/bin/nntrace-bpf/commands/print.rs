//! `nntrace-bpf print`: every section of trace files.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::{
    model::{causality::Questions, limits::Limits},
    replay,
    report::{section_list, snapshot::Snapshot},
};

use crate::{
    arguments::{Print, default_memory},
    output, stderr,
};

/// Prints every section of the files; returns the exit status.
pub fn run(cli: &Print) -> Result<ExitCode> {
    let replayed = replay::replay(&replay::Options {
        files: cli.files.clone(),
        range: cli.time_range,
        limits: Limits::of_memory(default_memory()),
        questions: Questions {
            graph: true,
            iteration_root: cli.iteration_root.clone(),
            ..Questions::default()
        },
        ..replay::Options::default()
    })?;
    let marks = replayed.marks();
    let text = if cli.tree { section_list::tree(marks) } else { section_list::list(marks) };
    output::print(&text)?;
    for note in Snapshot::of(&replayed.findings()).notes {
        stderr::message(note);
    }
    Ok(ExitCode::SUCCESS)
}
