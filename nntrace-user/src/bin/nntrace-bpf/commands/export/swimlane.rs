//! A recording, or traces, as a swimlane for a viewer.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufWriter, Seek as _, Write},
    ops::ControlFlow,
    path::Path,
    rc::Rc,
};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::{
        ThreadName,
        swimlane::{self, Clocks, Counters, Events, Format, SharedEvents, Written},
    },
    record::{self, OrderedSections, SectionOrMark},
    replay,
};

use super::{Request, note_on_hidden, notes_on_losses};
use crate::{
    arguments::Export,
    output::{progress, result_file::ResultFile},
    stderr,
};

/// Exports the files to a file.
pub(super) fn run<F: Format + 'static>(cli: &Export, output: &Path, request: &Request<'_>) -> Result<()> {
    super::refuse_rows(cli)?;
    let shown = Shown { least_ns: cli.min_span.unwrap_or(0), with_overhead: cli.overhead };
    let mut notes = Vec::new();
    let staged = ResultFile::open(output, cli.force)?.stage_streamed(|out| {
        notes = write::<F>(request, shown, out)?;
        Ok(())
    })?;
    notes.into_iter().for_each(stderr::message);
    staged.commit()
}

/// Choice of what a swimlane shows.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Shown {
    /// Duration below which sections are hidden, ns.
    pub(in crate::commands) least_ns: u64,
    /// Whether it has the dispatch overhead.
    pub(in crate::commands) with_overhead: bool,
}

/// Writes the swimlane of a recording, or of traces; returns notes on what it lacks.
pub(in crate::commands) fn write<F: Format + 'static>(
    request: &Request<'_>,
    shown: Shown,
    out: &mut impl Write,
) -> Result<Vec<String>> {
    match request.recording()? {
        Some(recording) => write_recording::<F>(request, shown, recording, out),
        None => write_traces::<F>(request, shown, out),
    }
}

fn write_recording<F: Format>(
    request: &Request<'_>,
    shown: Shown,
    recording: &Path,
    out: &mut impl Write,
) -> Result<Vec<String>> {
    let recorded = record::replay(recording, &request.of_recording())?;
    let sections = OrderedSections::open(recording)?;
    let threads = sections.threads().all().iter();
    let threads =
        threads.map(|thread| ThreadName { pid: thread.pid, tid: thread.tid, name: thread.name.clone() });
    let threads: Vec<ThreadName> = threads.collect();
    let clocks = recorded.run().clocks;
    let clocks = Clocks {
        monotonic_ns: clocks.monotonic_ns,
        boottime_ns: clocks.boottime_ns,
        realtime_ns: clocks.realtime_ns,
    };
    let (findings, timelines) = (recorded.findings(), recorded.timelines());
    let counters = Counters::of(&findings, timelines.as_ref(), shown.with_overhead);
    F::write_head(out, &findings, Some(&clocks), &threads, &counters).context(CANNOT)?;
    let mut events = Events::<F, _>::of_recording(out, &findings, &clocks, &threads, shown.least_ns);
    // What is damaged is among the notes of the replay.
    let _ = sections.visit_by_thread_with_marks(|found, thread| {
        match found {
            SectionOrMark::Section(section) => events.section(section, thread),
            SectionOrMark::Mark(mark) => events.mark(mark, thread),
        }
        ControlFlow::Continue(())
    });
    record::power_events(recording, |record| events.power(record))?;
    let written = events.finish(&findings, &counters).context(CANNOT)?;
    F::write_tail(written.out, &findings, Some(&clocks), &threads, &counters).context(CANNOT)?;
    let lost = notes_on_losses(&findings, format_args!("{}", recording.display()));
    Ok(note_on_hidden(written.hidden).into_iter().chain(lost).collect())
}

/// Exports traces. Which threads there are is known after all events: these wait in a file of their own.
fn write_traces<F: Format + 'static>(
    request: &Request<'_>,
    shown: Shown,
    out: &mut impl Write,
) -> Result<Vec<String>> {
    let events: SharedEvents<F, BufWriter<progress::Shown<File>>> = Rc::new(RefCell::new(None));
    let mut failure = None;
    // Each pass through the traces starts the events again.
    let mut start = || {
        match tempfile::tempfile() {
            Ok(file) => {
                let file = BufWriter::new(progress::shown(file, "events: "));
                drop(events.replace(Some(Events::by_end(file, None, shown.least_ns))));
            }
            Err(error) => failure = Some(error),
        }
        swimlane::observer(&events)
    };
    let replayed = replay::replay_with_observer(&request.of_traces(), &mut start)?;
    if let Some(error) = failure {
        return Err(error)
            .context("no file can be created in the folder for temporary files: name another by TMPDIR");
    }
    let findings = replayed.findings();
    let counters = Counters::of(&findings, replayed.timelines(), shown.with_overhead);
    let events = events.take().context("the traces were not read")?;
    let Written { out: events, threads, hidden } = events.finish(&findings, &counters).context(CANNOT)?;
    let mut events = events.into_inner().map_err(io::IntoInnerError::into_error).context(CANNOT)?;
    events.rewind().context(CANNOT)?;
    F::write_head(out, &findings, None, &threads, &counters).context(CANNOT)?;
    io::copy(&mut events, out).context(CANNOT)?;
    F::write_tail(out, &findings, None, &threads, &counters).context(CANNOT)?;
    let lost = notes_on_losses(&findings, format_args!("the traces"));
    Ok(note_on_hidden(hidden).into_iter().chain(lost).collect())
}

/// Reason of a failure to write.
const CANNOT: &str = "cannot write the trace: is there room?";
