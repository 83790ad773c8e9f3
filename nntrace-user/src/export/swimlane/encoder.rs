//! Interface between what a swimlane shows and the formats that show it.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use nntrace_common::record::Record;

use super::{Clocks, Counters, ThreadName, counters::CounterValue};
use crate::model::{Findings, devices::event::DeviceEvent};

/// Format of swimlanes: a head, the events by an encoder, and a tail.
pub trait Format {
    /// Encoder of its events.
    type Encoder<W: Write>: Encode<W>;

    /// Writes what stands before the events. Without clocks, times are of a clock that is not known.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_head(
        out: &mut impl Write,
        findings: &Findings<'_>,
        clocks: Option<&Clocks>,
        threads: &[ThreadName],
        counters: &Counters<'_>,
    ) -> io::Result<()>;

    /// Writes what stands after the events.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_tail(
        out: &mut impl Write,
        findings: &Findings<'_>,
        clocks: Option<&Clocks>,
        threads: &[ThreadName],
        counters: &Counters<'_>,
    ) -> io::Result<()>;
}

/// Encoder of events. Those of a track come in the order of time, ends before what follows them, but for instants of
/// hand-overs, which come last. A failure to write shows at the end.
pub trait Encode<W: Write> {
    /// Begins the events; without clocks, times are of a clock that is not known.
    fn new(out: W, clocks: Option<&Clocks>) -> Self;

    /// Describes a further track of a thread, before the events on it.
    fn further_track(&mut self, track: ThreadTrack);

    /// Begins a slice at a time (ns).
    fn begin(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>);

    /// Ends the innermost open slice of a track at a time (ns).
    fn end(&mut self, time: u64, track: ThreadTrack);

    /// Adds an instant at a time (ns).
    fn instant(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>);

    /// Sets the value of the counter with a name from a time (ns) on.
    fn counter(&mut self, time: u64, name: &str, value: CounterValue);

    /// Adds an event of an idle state, a frequency or hotplug, or a loss; other records are ignored.
    fn power(&mut self, record: &Record);

    /// Adds an event of a device's queue.
    fn device(&mut self, event: &EventOfDevice<'_>);

    /// Ends the events; returns what they were written to.
    ///
    /// # Errors
    /// When something could not be written.
    fn finish(self) -> io::Result<W>;
}

/// Track of a thread: its own, or one beside it for sections that do not nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadTrack {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Number among the thread's tracks; 0 is its own.
    pub lane: u32,
}

/// Event of a device's queue, with its time (ns), and the CPU and the thread that it is of.
pub struct EventOfDevice<'a> {
    pub(crate) event: &'a DeviceEvent<'a>,
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) tid: u32,
}

/// Text and relations of a slice or an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label<'a> {
    /// Name.
    pub name: Cow<'a, str>,
    /// Categories.
    pub categories: &'a [&'a str],
    /// Arguments, by key.
    pub arguments: Vec<(Cow<'static, str>, Value<'a>)>,
    /// Flows that begin or end at it.
    pub flows: Vec<Flow>,
}

/// Value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Number.
    Number(u64),
    /// Text.
    Text(Cow<'a, str>),
}

/// End of a flow, with the flow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It begins.
    Begin(u64),
    /// It ends.
    End(u64),
}

impl ThreadTrack {
    /// Returns the own track of a thread.
    #[must_use]
    pub(crate) const fn own(pid: u32, tid: u32) -> Self {
        Self { pid, tid, lane: 0 }
    }
}

impl<'a> Label<'a> {
    /// Adds an argument with a text.
    pub(super) fn text(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Cow<'a, str>>) {
        self.arguments.push((key.into(), Value::Text(value.into())));
    }

    /// Adds an argument with a number.
    pub(super) fn number(&mut self, key: &'static str, value: u64) {
        self.arguments.push((key.into(), Value::Number(value)));
    }
}
