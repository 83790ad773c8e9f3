//! `nntrace-bpf what-if`: a run with other speeds.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::analyze::what_if::Answer;

use super::graph_question::{ask, show};
use crate::arguments::{WhatIf, usage};

/// Predicts a run; returns the exit status.
pub fn run(cli: &WhatIf) -> Result<ExitCode> {
    if cli.speeds.is_empty() && cli.frequencies.is_empty() && !cli.rank && cli.cpus.is_none() {
        let message = "nothing is to be other than recorded: name it with --speed, --freq or --cpus, or ask what to speed up first \
                       with --rank";
        return Err(usage(message.into()));
    }
    let answer = ask(&cli.question, |collector, findings, timelines| {
        Answer::new(collector, findings, timelines, &cli.options())
    })?;
    show(&cli.question, &answer, || answer.text())
}
