//! `nntrace-bpf export`: a recording, or traces, in the form of other programs.

mod parquet;
mod results;
pub(super) mod swimlane;
mod systrace;

use std::{fmt, process::ExitCode};

use anyhow::{Result, bail};
use nntrace_user::{
    export::{chrome, perfetto},
    model::{Findings, causality::Questions, section_filter::Hidden},
    report::snapshot::Snapshot,
};

use super::file_run::Request;
use crate::arguments::{Export, ExportOutput, OutputKind, usage};

/// Exports the files; returns the exit status.
pub fn run(cli: &Export) -> Result<ExitCode> {
    let request = Request {
        files: &cli.files,
        range: cli.time_range,
        drivers: &cli.drivers,
        host: &cli.host,
        questions: questions(cli),
        memory: cli.memory,
        with_details: false,
        with_timelines: true,
    };
    if cli.overhead && !has_overhead(&cli.output) {
        let message =
            "--overhead is for .pftrace, .trace.json and .json: this output has nothing of it; leave it out";
        return Err(usage(message.into()));
    }
    match &cli.output {
        ExportOutput::Parquet(folder) => parquet::run(cli, folder, &request)?,
        ExportOutput::Systrace(file) => systrace::run(cli, file, &request)?,
        ExportOutput::Results(output) => results::run(cli, output, &request)?,
        ExportOutput::Chrome(file) => swimlane::run::<chrome::Format>(cli, file, &request)?,
        ExportOutput::Perfetto(file) => swimlane::run::<perfetto::Format>(cli, file, &request)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the questions that the output answers.
fn questions(cli: &Export) -> Questions {
    let kind = match &cli.output {
        ExportOutput::Results(output) => Some(output.kind),
        _ => None,
    };
    Questions {
        iteration_root: cli.iteration_root.clone(),
        graph: kind == Some(OutputKind::Dot),
        every_iteration: matches!(cli.output, ExportOutput::Parquet(_)) || kind == Some(OutputKind::Pprof),
        hand_overs: cli.overhead || kind.is_none_or(|kind| kind == OutputKind::Html),
        ..Questions::default()
    }
}

/// Whether an output has the dispatch overhead.
fn has_overhead(output: &ExportOutput) -> bool {
    match output {
        ExportOutput::Perfetto(_) | ExportOutput::Chrome(_) => true,
        ExportOutput::Results(output) => output.kind == OutputKind::Json,
        ExportOutput::Parquet(_) | ExportOutput::Systrace(_) => false,
    }
}

/// Refuses options for the rows of tables.
fn refuse_rows(cli: &Export) -> Result<()> {
    if cli.board.is_some() || cli.run.is_some() {
        bail!("--board and --run name the rows of tables in .parquet: this output has none; leave them out");
    }
    Ok(())
}

/// Refuses an option for swimlanes.
fn refuse_min_span(cli: &Export) -> Result<()> {
    if cli.min_span.is_some() {
        bail!("--min-span is for swimlanes: this output has all sections; leave it out");
    }
    Ok(())
}

/// Returns how many sections `--min-span` has hidden, if any.
fn note_on_hidden(hidden: Hidden) -> Option<String> {
    (hidden.sections > 0).then(|| hidden.to_string())
}

/// Returns notes on what a run lacks. Who exports a thousand runs has to see only those that lack something.
fn notes_on_losses(findings: &Findings<'_>, run: fmt::Arguments<'_>) -> Vec<String> {
    let Snapshot { loss, notes, .. } = Snapshot::of(findings);
    if loss.incomplete.is_empty() && loss.summed.is_empty() {
        return Vec::new();
    }
    notes.into_iter().map(|note| format!("{run}: {note}")).collect()
}
