//! `nntrace-bpf explain`: a run on one page, recorded first where it is none yet.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::{
    analyze::{
        explain::{Page, Subject},
        placement,
        run_graph::{Collector, Refusal},
        why::Answer,
    },
    model::causality::Questions,
    report::snapshot::Snapshot,
};

use super::{
    file_run::{Request, Run},
    fresh_run::{self, AskedRun},
};
use crate::{
    arguments::{Explain, Level, default_memory, usage},
    output,
};

/// Explains a run; returns the exit status, which is that of a command.
pub fn run(cli: &Explain) -> Result<ExitCode> {
    fresh_run::ask(&cli.run, Level::Sched, |asked| show(cli, asked))
}

/// Reads a run, and writes its page.
fn show(cli: &Explain, asked: &AskedRun<'_>) -> Result<()> {
    let memory = cli.run.memory;
    let request = Request {
        files: asked.files,
        range: None,
        drivers: &[],
        host: asked.host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory,
        with_details: false,
        with_timelines: true,
    };
    let memory = memory.unwrap_or_else(default_memory);
    let collector = Collector::new(memory - memory / 4);
    let operators = placement::Collector::new(memory / 4);
    let run = Run::observed(&request, || collector.observer().and(operators.observer()))?;
    let findings = run.findings();
    let why = Answer::new(&collector, &findings, run.timelines().as_ref(), &cli.why());
    if let Err(Refusal::Question(reason)) = why {
        return Err(usage(reason));
    }
    let title = cli.run.processes().unwrap_or_else(|| run.title(asked.files));
    let snapshot = Snapshot::of(&findings);
    let are_hooked = snapshot.source.engines.iter().any(|engine| engine.hooked > 0);
    let has_operators = !cli.run.is_live() || are_hooked || cli.run.engines.asks_for_operators();
    let subject = Subject { title: &title, files: asked.words, has_operators };
    let page = Page::new(&snapshot, why, &operators, &subject);
    if cli.run.json { output::write_stdout(&output::json(&page)?) } else { output::print(&page.text()) }
}
