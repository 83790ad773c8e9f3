//! A recording, or traces, as text of ftrace.

use std::{io::Write, path::Path};

use anyhow::{Context as _, Result};
use nntrace_user::{
    emit::{
        Script,
        systrace::{self, Collector, SharedCollector, Systrace},
    },
    record, replay,
};

use super::{Request, notes_on_losses, refuse_min_span, refuse_rows};
use crate::{arguments::Export, output::result_file::ResultFile, stderr};

/// Reason of a failure to write.
const CANNOT: &str = "cannot write the trace: is there room?";

/// Exports the files to a file.
pub(super) fn run(cli: &Export, output: &Path, request: &Request<'_>) -> Result<()> {
    refuse_rows(cli)?;
    refuse_min_span(cli)?;
    let recording = request.recording()?;
    let mut notes = Vec::new();
    let staged = ResultFile::open(output, cli.force)?.stage_streamed(|out| {
        notes = match recording {
            Some(recording) => export_recording(request, recording, out)?,
            None => export_traces(request, out)?,
        };
        Ok(())
    })?;
    notes.into_iter().for_each(stderr::message);
    staged.commit()
}

fn export_recording(request: &Request<'_>, recording: &Path, out: &mut impl Write) -> Result<Vec<String>> {
    let recorded = record::replay(recording, &request.of_recording())?;
    let script = Script::of_any(recording)?;
    let notes: Vec<String> = script.notes().iter().map(ToString::to_string).collect();
    let findings = recorded.findings();
    let mut text = Systrace::new(out, &script).of_window(&findings);
    record::power_events(recording, |record| text.power(record))?;
    text.finish().context(CANNOT)?;
    let lost = notes_on_losses(&findings, format_args!("{}", recording.display()));
    Ok([notes, lost].concat())
}

fn export_traces(request: &Request<'_>, out: &mut impl Write) -> Result<Vec<String>> {
    let collector = SharedCollector::default();
    // Each pass through the traces collects again.
    let mut start = || {
        collector.replace(Collector::default());
        systrace::observer(&collector)
    };
    let replayed = replay::replay_with_observer(&request.of_traces(), &mut start)?;
    let findings = replayed.findings();
    let (script, power) = collector.take().script(&findings)?;
    let notes: Vec<String> = script.notes().iter().map(ToString::to_string).collect();
    let mut text = Systrace::new(out, &script).of_window(&findings);
    power.visit(|time, lines| text.lines(time, lines)).context(CANNOT)?;
    text.finish().context(CANNOT)?;
    let lost = notes_on_losses(&findings, format_args!("the traces"));
    Ok([notes, lost].concat())
}
