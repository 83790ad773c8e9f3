//! `nntrace-bpf where`: where the operators of a model ran.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::{
    analyze::placement::{Collector, Page},
    model::causality::Questions,
    report::snapshot::Snapshot,
};

use super::{
    file_run::{Request, Run},
    fresh_run::{self, AskedRun},
};
use crate::{
    arguments::{Level, Where, default_memory},
    output,
};

/// Shows where operators ran; returns the exit status, which is that of a command.
pub fn run(cli: &Where) -> Result<ExitCode> {
    fresh_run::ask(&cli.run, Level::Marks, |asked| show(cli, asked))
}

/// Reads a run, and writes its page.
fn show(cli: &Where, asked: &AskedRun<'_>) -> Result<()> {
    let request = Request {
        files: asked.files,
        range: None,
        drivers: &[],
        host: asked.host,
        questions: Questions::default(),
        memory: cli.run.memory,
        with_details: false,
        with_timelines: false,
    };
    let collector = Collector::new(cli.run.memory.unwrap_or_else(default_memory));
    let run = Run::observed(&request, || collector.observer())?;
    let title = cli.run.processes().unwrap_or_else(|| run.title(asked.files));
    let page = Page::new(&Snapshot::of(&run.findings()), &collector, &title);
    if cli.run.json { output::write_stdout(&output::json(&page)?) } else { output::print(&page.text()) }
}
