//! A recording, or traces, as tables in Parquet.

use std::{cell::RefCell, ffi::OsStr, path::Path, rc::Rc};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::parquet::{self, Label, RecordedRun, Spans},
    model::{Findings, section::Section, timeline::Timelines},
    record::{self, Recorded},
    replay::{self, Replayed},
    result_folder::{Kind, ResultFolder},
};

use super::Request;
use crate::{arguments::Export, stderr};

/// Tables as results.
const KIND: Kind =
    Kind { is_part: |name| parquet::FILES.iter().any(|table| name == OsStr::new(table)), last: None };

/// Exports the files to a folder.
pub(super) fn run(cli: &Export, output: &Path, request: &Request<'_>) -> Result<()> {
    super::refuse_min_span(cli)?;
    let recording = request.recording()?;
    let mut folder = ResultFolder::create(output, KIND, cli.force)?;
    match recording {
        Some(recording) => export_recording(cli, request, recording, folder.path())?,
        None => export_traces(cli, request, folder.path())?,
    }
    Ok(folder.settle()?)
}

fn export_recording(cli: &Export, request: &Request<'_>, recording: &Path, folder: &Path) -> Result<()> {
    let recorded = record::replay(recording, &request.of_recording())?;
    let label = label_of_recording(cli, &recorded)?;
    let mut spans = Spans::create(folder, &label)?;
    // What is damaged is among the notes of the replay.
    let _ = record::sections(recording, |section| spans.add(section))?;
    spans.finish()?;
    let run = recorded.run();
    let facts = RecordedRun {
        tool: &run.tool,
        command: &run.command,
        arguments: &run.arguments,
        environment: &run.environment,
        exit_status: run.exit_status,
        monotonic_ns: run.clocks.monotonic_ns,
        boottime_ns: run.clocks.boottime_ns,
        realtime_ns: run.clocks.realtime_ns,
    };
    write(folder, &label, &recorded.findings(), recorded.timelines().as_ref(), Some(facts))
}

fn export_traces(cli: &Export, request: &Request<'_>, folder: &Path) -> Result<()> {
    let label = label_of_traces(cli)?;
    let (replayed, spans) = replay_traces(request, folder, &label)?;
    spans.finish()?;
    write(folder, &label, &replayed.findings(), replayed.timelines(), None)
}

/// Replays traces; returns the table of their sections too.
fn replay_traces(request: &Request<'_>, folder: &Path, label: &Label) -> Result<(Replayed, Spans)> {
    let spans = Rc::new(RefCell::new(None));
    // Each pass through the traces starts the table again.
    let mut start = || {
        let spans = Rc::clone(&spans);
        spans.replace(Some(Spans::create(folder, label)));
        move |section: &Section<'_>| {
            if let Some(Ok(spans)) = &mut *spans.borrow_mut() {
                spans.add(section);
            }
        }
    };
    let replayed = replay::replay_with_sections(&request.of_traces(), &mut start)?;
    let spans = spans.take().unwrap_or_else(|| Spans::create(folder, label))?;
    Ok((replayed, spans))
}

fn write(
    folder: &Path,
    label: &Label,
    findings: &Findings<'_>,
    timelines: Option<&Timelines>,
    recorded: Option<RecordedRun<'_>>,
) -> Result<()> {
    parquet::write(folder, label, &parquet::Run { findings, timelines, recorded })?;
    // The table of the run has all notes.
    super::notes_on_losses(findings, format_args!("{} of {}", label.run, label.board))
        .into_iter()
        .for_each(stderr::message);
    Ok(())
}

fn label_of_recording(cli: &Export, recorded: &Recorded) -> Result<Label> {
    let host = Some(recorded.run().host_name.clone()).filter(|name| !name.is_empty());
    let board = cli.board.clone().or(host);
    let number = || recorded.number().map(|number| format!("{number:016x}"));
    Ok(Label {
        board: board.context("the recording does not name its host: name the board with --board NAME")?,
        run: cli
            .run
            .clone()
            .or_else(number)
            .context("the number of the recording cannot be read: name the run with --run ID")?,
    })
}

fn label_of_traces(cli: &Export) -> Result<Label> {
    let stem = || cli.files.first().and_then(|file| file.file_stem()).filter(|stem| *stem != "-");
    let run = cli.run.clone().or_else(|| stem().map(|stem| stem.to_string_lossy().into_owned()));
    Ok(Label {
        board: cli
            .board
            .clone()
            .context("a trace does not name its host: name the board with --board NAME")?,
        run: run.context("standard input has no name: name the run with --run ID")?,
    })
}
