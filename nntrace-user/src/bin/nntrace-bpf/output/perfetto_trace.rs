//! Trace for Perfetto that is collected while a run goes on.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufWriter, Seek as _, Write},
    rc::Rc,
};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::{
        perfetto,
        swimlane::{self, Clocks, Counters, Events, Format as _, SharedEvents, Written},
    },
    model::{Findings, input::Observer},
    record::ClockReading,
};

/// Reason of a failure to write.
const CANNOT: &str = "cannot write the trace: is there room?";

/// Collection of the events of a trace. Which threads there are is known after all of them: they wait in a file of their own.
pub struct PerfettoTrace {
    events: SharedEvents<perfetto::Format, BufWriter<File>>,
    clocks: Clocks,
}

impl PerfettoTrace {
    /// Begins to collect the events of a run with these clocks, without sections shorter than `least_ns`; returns who takes
    /// them, too.
    ///
    /// # Errors
    /// When there is no file for them.
    pub fn begin(clocks: ClockReading, least_ns: u64) -> Result<(Self, Observer)> {
        let file = tempfile::tempfile()
            .context("no file can be created in the folder for temporary files: name another by TMPDIR")?;
        let clocks = Clocks {
            monotonic_ns: clocks.monotonic_ns,
            boottime_ns: clocks.boottime_ns,
            realtime_ns: clocks.realtime_ns,
        };
        let events = Events::by_end(BufWriter::new(file), Some(&clocks), least_ns);
        let events: SharedEvents<perfetto::Format, _> = Rc::new(RefCell::new(Some(events)));
        let observer = swimlane::observer(&events);
        Ok((Self { events, clocks }, observer))
    }

    /// Writes the trace of the run, which has ended; returns a note on sections that are hidden, if any are.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(
        &self,
        out: &mut impl Write,
        findings: &Findings<'_>,
        counters: &Counters<'_>,
    ) -> Result<Option<String>> {
        let events = self.events.take().context("the trace was written already")?;
        let Written { out: events, threads, hidden } = events.finish(findings, counters).context(CANNOT)?;
        let mut events = events.into_inner().map_err(io::IntoInnerError::into_error).context(CANNOT)?;
        events.rewind().context(CANNOT)?;
        perfetto::Format::write_head(out, findings, Some(&self.clocks), &threads, counters)
            .context(CANNOT)?;
        io::copy(&mut events, out).context(CANNOT)?;
        Ok((hidden.sections > 0).then(|| hidden.to_string()))
    }
}
