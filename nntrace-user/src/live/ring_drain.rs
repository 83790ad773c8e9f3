//! Draining of the per-CPU rings, and merging of their records into one order of time.
//!
//! The records of a ring are in the order of their reservation, which is nearly that of time. A drain takes all
//! records, and hands out those older than a watermark: the time just before the drain began, less a slack for
//! records whose program had read the clock but not finished writing. Records from lanes are added in between.

use std::{io, os::fd::OwnedFd};

use nntrace_common::{calls::CallRecord, record::Record};

use super::{
    calls, clock,
    decode::{self, Track},
    express::ExpressEvent,
    kernel::rings::RingBuffers,
    merge::Merge,
};

/// Time from a program's reading of the clock to finishing its record at most. Power events cannot be interrupted; a
/// mark's program can be preempted, but its span's place in the order matters less.
const SLACK_NS: u64 = 5_000_000;

/// Record that is handed out unordered, as it carries its own times.
#[derive(Clone, Copy, Debug)]
pub enum Unordered<'a> {
    /// Counter, instant, slice, or the text of a begin.
    Track(Track<'a>),
    /// Fork, exec, exit or another event of a process.
    Process(&'a Record),
    /// Call of a function.
    Call(&'a CallRecord),
}

/// Rings of all CPUs.
pub struct Rings {
    buffers: RingBuffers,
    merge: Merge,
    process_events: Vec<Record>,
    express_events: Vec<ExpressEvent>,
    counts: DrainCounts,
}

/// Counts of the records drained so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrainCounts {
    /// Records.
    pub drained: u64,
    /// Records older than ones already handed out, and therefore out of order.
    pub late: u64,
    /// Records that could not be decoded; only the programs of another version write such.
    pub unreadable: u64,
}

impl Rings {
    /// Takes over the rings of a loaded [`super::kernel::Kernel`].
    #[must_use]
    pub fn new(buffers: RingBuffers) -> Self {
        Self {
            buffers,
            merge: Merge::default(),
            process_events: Vec::new(),
            express_events: Vec::new(),
            counts: DrainCounts::default(),
        }
    }

    /// Returns the time (ns) up to which a drain that begins now sees every record.
    #[must_use]
    pub(crate) fn watermark() -> u64 {
        clock::now().saturating_sub(SLACK_NS)
    }

    /// Takes all records from the rings; unordered ones go to `aside`, as they come. `lost` are the counts of lost power
    /// records by CPU, read before.
    pub fn read(&mut self, lost: &[u32], mut aside: impl FnMut(Unordered<'_>)) {
        let Self { buffers, merge, process_events, express_events, counts } = self;
        buffers.take(|bytes| {
            counts.drained += 1;
            if let Some(track) = decode::track(bytes) {
                aside(Unordered::Track(track));
                return;
            }
            if let Some(event) = decode::express(bytes) {
                express_events.push(event);
                return;
            }
            if let Some(call) = calls::decode(bytes) {
                aside(Unordered::Call(&call));
                return;
            }
            match decode::record(bytes) {
                Some(record @ (Record::Fork(_) | Record::Exec(_) | Record::Exit(_) | Record::Loader(_))) => {
                    aside(Unordered::Process(&record));
                    express_events.extend(ExpressEvent::last(&record));
                    process_events.push(record);
                }
                Some(record) => merge.push(record),
                None => counts.unreadable += 1,
            }
        });
        merge.find_losses(lost);
    }

    /// Whether this many records of each CPU's ring were read.
    pub(crate) fn are_read(&self, put: &[u64]) -> bool {
        self.buffers.are_taken(put)
    }

    /// Adds a record that was made of what threads wrote to their lanes.
    pub(crate) fn push(&mut self, record: Record) {
        self.merge.push(record);
    }

    /// Hands out, in order of time, the records up to a time (ns).
    pub fn hand_out(&mut self, until: u64, sink: impl FnMut(&Record)) {
        self.merge.hand_out(until, sink);
    }

    /// Takes the events of threads with lanes since the last call.
    pub(crate) fn take_express_events(&mut self) -> Vec<ExpressEvent> {
        std::mem::take(&mut self.express_events)
    }

    /// Takes the events of processes since the last call. They are not merged with the rest: a program that was just
    /// started does not wait, and has to be probed at once.
    pub(crate) fn take_process_events(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.process_events)
    }

    /// Returns the counts so far.
    #[must_use]
    pub(crate) fn counts(&self) -> DrainCounts {
        DrainCounts { late: self.merge.late(), ..self.counts }
    }

    /// Returns descriptors that become readable when a ring asks to be drained: when it is half full, or on an event
    /// of a process. They are duplicates that outlive the rings.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(crate) fn alarms(&self) -> io::Result<Vec<OwnedFd>> {
        self.buffers.alarms()
    }
}
