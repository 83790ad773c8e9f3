//! A recording, or traces, as a trace for Perfetto.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufWriter, Seek as _, Write},
    ops::ControlFlow,
    path::Path,
    rc::Rc,
};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    export::{
        ThreadName,
        perfetto::{self, Clocks, Events, SharedEvents, Written},
    },
    record::{self, OrderedSections},
    replay,
};

use super::{Request, tell_hidden};
use crate::{arguments::Export, output::result_file::ResultFile};

/// Exports the files to a file.
pub(super) fn run(cli: &Export, output: &Path, request: &Request<'_>) -> Result<()> {
    if cli.board.is_some() || cli.run.is_some() {
        bail!("--board and --run name the rows of tables: a trace for Perfetto has none; leave them out");
    }
    let (recording, least_ns) = (request.recording()?, cli.min_span.unwrap_or(0));
    let staged = ResultFile::open(output, cli.force)?.stage_streamed(|out| match recording {
        Some(recording) => export_recording(request, recording, least_ns, out),
        None => export_traces(request, least_ns, out),
    })?;
    staged.commit()
}

fn export_recording(
    request: &Request<'_>,
    recording: &Path,
    least_ns: u64,
    out: &mut impl Write,
) -> Result<()> {
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
    let findings = recorded.findings();
    perfetto::write_head(out, &findings, Some(&clocks), &threads).context(CANNOT)?;
    let mut events = Events::of_recording(out, &findings, &clocks, &threads, least_ns);
    // What is damaged is among the notes of the replay.
    let _ = sections.visit_by_thread(|section, thread| {
        events.section(section, thread);
        ControlFlow::Continue(())
    });
    record::power_events(recording, |record| events.power(record))?;
    let written = events.finish(&findings, recorded.timelines().as_ref()).context(CANNOT)?;
    tell_hidden(written.hidden);
    super::tell_losses(&findings, format_args!("{}", recording.display()));
    Ok(())
}

/// Exports traces. Which threads there are is known behind all events: these wait in a file of their own.
fn export_traces(request: &Request<'_>, least_ns: u64, out: &mut impl Write) -> Result<()> {
    let events: SharedEvents<BufWriter<File>> = Rc::new(RefCell::new(None));
    let mut failure = None;
    // Each pass through the traces begins the events anew.
    let mut start = || {
        match tempfile::tempfile() {
            Ok(file) => drop(events.replace(Some(Events::of_traces(BufWriter::new(file), least_ns)))),
            Err(error) => failure = Some(error),
        }
        perfetto::observer(&events)
    };
    let replayed = replay::replay_with_observer(&request.of_traces(), &mut start)?;
    if let Some(error) = failure {
        return Err(error)
            .context("no file can be created in the folder for temporary files: name another by TMPDIR");
    }
    let findings = replayed.findings();
    let events = events.take().context("the traces were not read")?;
    let Written { out: events, threads, hidden } =
        events.finish(&findings, replayed.timelines()).context(CANNOT)?;
    let mut events = events.into_inner().map_err(io::IntoInnerError::into_error).context(CANNOT)?;
    events.rewind().context(CANNOT)?;
    perfetto::write_head(out, &findings, None, &threads).context(CANNOT)?;
    io::copy(&mut events, out).context(CANNOT)?;
    tell_hidden(hidden);
    super::tell_losses(&findings, format_args!("the traces"));
    Ok(())
}

/// Reason of a failure to write.
const CANNOT: &str = "cannot write the trace: is there room?";
