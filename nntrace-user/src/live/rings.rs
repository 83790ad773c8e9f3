//! Draining the per-CPU rings, and putting their records into one order of time.
//!
//! Within a ring records stand in the order of their reservation, nearly that of time. A drain takes everything there
//! is, and hands out what is older than a watermark: the time just before the drain began, less a slack for records
//! whose program had looked at the clock but not finished writing.

use std::{io, os::fd::OwnedFd, time::Duration};

use nntrace_common::record::Record;

use super::{
    clock,
    decode::{self, Track},
    kernel::rings::RingBuffers,
    merge::Merge,
};

/// How long a program may take from looking at the clock to finishing its record. Power events cannot be
/// interrupted; a mark's program can be preempted, but its span's place in the order matters less.
const SLACK: Duration = Duration::from_millis(5);

/// A record that is handed out as it comes: it has its own place in time.
#[derive(Clone, Copy, Debug)]
pub enum Unordered<'a> {
    /// A counter, an instant, a slice, or what a begin says.
    Track(Track<'a>),
    /// What a process did.
    Process(&'a Record),
}

/// The rings of all CPUs.
pub struct Rings {
    buffers: RingBuffers,
    merge: Merge,
    process_events: Vec<Record>,
    counts: DrainCounts,
}

/// What came out of the rings so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrainCounts {
    /// Records.
    pub drained: u64,
    /// Records of these that were older than what had been handed out: they came out of order.
    pub late: u64,
    /// Records that could not be read; only another version's programs write such.
    pub unreadable: u64,
}

impl Rings {
    /// Takes the rings of a loaded [`super::kernel::Kernel`].
    #[must_use]
    pub fn new(buffers: RingBuffers) -> Self {
        Self { buffers, merge: Merge::default(), process_events: Vec::new(), counts: DrainCounts::default() }
    }

    /// Takes what is in the rings, and hands out, in order of time, what cannot be preceded any more. `lost` are the
    /// power records that were lost so far, by CPU, read before.
    /// The rest is handed to `aside` before, as it comes. Returns the moment (ns) up to which everything was handed out.
    pub fn drain(
        &mut self,
        lost: &[u32],
        aside: impl FnMut(Unordered<'_>),
        sink: impl FnMut(&Record),
    ) -> u64 {
        let slack = u64::try_from(SLACK.as_nanos()).unwrap_or(u64::MAX);
        let until = clock::now().saturating_sub(slack);
        self.take(lost, aside);
        self.merge.hand_out(until, sink);
        until
    }

    /// Like [`Rings::drain`], and hands out everything: for when the programs are detached.
    pub fn drain_all(
        &mut self,
        lost: &[u32],
        aside: impl FnMut(Unordered<'_>),
        sink: impl FnMut(&Record),
    ) -> u64 {
        self.take(lost, aside);
        self.merge.hand_out(u64::MAX, sink);
        u64::MAX
    }

    /// What processes did, since the last call. It is not put in order with the rest: a program that was just
    /// started waits for nobody, and has to be probed at once.
    pub(crate) fn take_process_events(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.process_events)
    }

    /// What came out so far.
    #[must_use]
    pub(crate) fn counts(&self) -> DrainCounts {
        DrainCounts { late: self.merge.late(), ..self.counts }
    }

    fn take(&mut self, lost: &[u32], mut aside: impl FnMut(Unordered<'_>)) {
        let Self { buffers, merge, process_events, counts } = self;
        buffers.take(|bytes| {
            counts.drained += 1;
            if let Some(track) = decode::track(bytes) {
                aside(Unordered::Track(track));
                return;
            }
            match decode::record(bytes) {
                Some(record @ (Record::Fork(_) | Record::Exec(_) | Record::Exit(_) | Record::Loader(_))) => {
                    aside(Unordered::Process(&record));
                    process_events.push(record);
                }
                Some(record) => merge.push(record),
                None => counts.unreadable += 1,
            }
        });
        merge.settle(lost);
    }

    /// Descriptors that become readable when a ring asks to be drained: when it is half full, or when a process did
    /// something. They stay open for themselves.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn alarms(&self) -> io::Result<Vec<OwnedFd>> {
        self.buffers.alarms()
    }
}
