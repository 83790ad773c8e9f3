//! `nntrace-bpf why`: the causes of slow executions.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::analyze::why::Answer;

use super::graph_question::{ask, show};
use crate::arguments::Why;

/// Answers why executions were slow; returns the exit status.
pub fn run(cli: &Why) -> Result<ExitCode> {
    let answer = ask(&cli.question, |collector, findings, timelines| {
        Answer::new(collector, findings, timelines, &cli.options())
    })?;
    show(&cli.question, &answer, || answer.text())
}
