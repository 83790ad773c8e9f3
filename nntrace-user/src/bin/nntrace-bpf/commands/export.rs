//! `nntrace-bpf export`: a recording, or traces, in the form of other programs.

mod html;
mod parquet;
mod perfetto;

use std::{fmt, process::ExitCode};

use anyhow::Result;
use nntrace_user::{
    model::{Findings, causality::Questions, section_filter::Hidden},
    report::snapshot::Snapshot,
};

use super::file_run::Request;
use crate::{
    arguments::{Export, ExportOutput},
    stderr,
};

/// Exports the files; returns the exit status.
pub fn run(cli: &Export) -> Result<ExitCode> {
    let request = Request {
        files: &cli.files,
        range: cli.time_range,
        drivers: &cli.drivers,
        host: &cli.host,
        questions: Questions {
            iteration_root: cli.iteration_root.clone(),
            hand_overs: true,
            ..Questions::default()
        },
        memory: cli.memory,
        with_details: false,
        with_timelines: true,
    };
    match &cli.output {
        ExportOutput::Parquet(folder) => parquet::run(cli, folder, &request)?,
        ExportOutput::Html(file) => html::run(cli, file, &request)?,
        ExportOutput::Perfetto(file) => perfetto::run(cli, file, &request)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells how many sections `--min-span` has hidden, if any.
fn tell_hidden(hidden: Hidden) {
    if hidden.sections > 0 {
        stderr::message(hidden);
    }
}

/// Tells what a run lacks. Who exports a thousand runs has to see only those that lack something.
fn tell_losses(findings: &Findings<'_>, run: fmt::Arguments<'_>) {
    let Snapshot { loss, notes, .. } = Snapshot::of(findings);
    if !loss.incomplete.is_empty() || !loss.summed.is_empty() {
        for note in notes {
            stderr::message(format_args!("{run}: {note}"));
        }
    }
}
