//! Questions to the graph of a run: how it is read, and how an answer is shown.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, anyhow};
use nntrace_user::{
    analyze::run_graph::{Collector, Refusal},
    model::{Findings, causality::Questions, timeline::Timelines},
    replay::TimeRange,
    report::terminal_text::Text,
};
use serde::Serialize;

use super::file_run::{Request, Run};
use crate::{
    arguments::{GraphQuestion, HostOptions, default_memory, usage},
    output,
};

/// Run that is asked about.
pub(super) struct Asked<'a> {
    /// Files, or the folder of a recording.
    pub(super) files: &'a [PathBuf],
    /// Part of the time of traces.
    pub(super) range: Option<TimeRange>,
    /// Host of traces.
    pub(super) host: &'a HostOptions,
    /// Memory for the events of the graph, bytes, if it was given.
    pub(super) memory: Option<u64>,
}

/// Reads the run, and has the question answered; a refusal is an error, and one of the question a wrong command line.
pub(super) fn ask<A>(
    question: &GraphQuestion,
    answer: impl FnOnce(&Collector, &Findings<'_>, Option<&Timelines>) -> Result<A, Refusal>,
) -> Result<A> {
    let asked = Asked {
        files: &question.files,
        range: question.time_range,
        host: &question.host,
        memory: question.memory,
    };
    self::answer(&asked, answer)?.map_err(|refusal| match refusal {
        Refusal::Question(reason) => usage(reason),
        Refusal::Run(reason) => anyhow!(reason),
    })
}

/// Reads the run, and has the question answered or refused.
pub(super) fn answer<A>(
    asked: &Asked<'_>,
    answer: impl FnOnce(&Collector, &Findings<'_>, Option<&Timelines>) -> Result<A, Refusal>,
) -> Result<Result<A, Refusal>> {
    let request = Request {
        files: asked.files,
        range: asked.range,
        drivers: &[],
        host: asked.host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory: asked.memory,
        with_details: false,
        with_timelines: true,
    };
    let collector = Collector::new(asked.memory.unwrap_or_else(default_memory));
    let run = Run::observed(&request, || collector.observer())?;
    Ok(answer(&collector, &run.findings(), run.timelines().as_ref()))
}

/// Writes an answer in the form that is wanted; returns the exit status.
pub(super) fn show(
    question: &GraphQuestion,
    answer: &impl Serialize,
    text: impl FnOnce() -> Text,
) -> Result<ExitCode> {
    if question.json {
        output::write_stdout(&output::json(answer)?)?;
    } else {
        output::print(&text())?;
    }
    Ok(ExitCode::SUCCESS)
}
