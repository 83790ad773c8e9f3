//! Questions to the graph of a run: how it is read, and how an answer is shown.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use nntrace_user::{
    analyze::run_graph::{Collector, Refusal},
    model::{Findings, causality::Questions, timeline::Timelines},
    report::terminal_text::Text,
};

use super::file_run::{Request, Run};
use crate::{
    arguments::{GraphQuestion, default_memory, usage},
    output,
};

/// Reads the run, and has the question answered.
pub(super) fn ask<A>(
    question: &GraphQuestion,
    answer: impl FnOnce(&Collector, &Findings<'_>, Option<&Timelines>) -> Result<A, Refusal>,
) -> Result<A> {
    let request = Request {
        files: &question.files,
        range: question.time_range,
        drivers: &[],
        host: &question.host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory: question.memory,
        with_details: false,
        with_timelines: true,
    };
    let collector = Collector::new(question.memory.unwrap_or_else(default_memory));
    let run = Run::observed(&request, || collector.observer())?;
    answer(&collector, &run.findings(), run.timelines().as_ref()).map_err(|refusal| match refusal {
        Refusal::Question(reason) => usage(reason),
        Refusal::Run(reason) => anyhow!(reason),
    })
}

/// Writes an answer in the form that is wanted; returns the exit status.
pub(super) fn show(
    question: &GraphQuestion,
    json: impl FnOnce() -> serde_json::Result<Vec<u8>>,
    text: impl FnOnce() -> Text,
) -> Result<ExitCode> {
    if question.json {
        output::write_stdout(&json()?)?;
    } else {
        output::print(&text())?;
    }
    Ok(ExitCode::SUCCESS)
}
