//! Cuts: moments at which every block of every stream ends, so that all events before can be given up together.

use nntrace_common::record::Record;

use super::{cpu_states::CpuStates, kept::Kept};
use crate::model::input::Input;

/// Time by which an event may be ahead of the time up to which everything was taken, ns. Others have wrong times.
const AHEAD: u64 = 1_000_000_000;

/// Moments at which blocks are cut.
pub(super) struct Cuts {
    /// Time from one to the next, ns.
    every: u64,
    /// Bytes after which one comes earlier.
    most: u64,
    /// Time of the last one, ns.
    last: u64,
    /// Bytes since then.
    bytes: u64,
    /// Latest time of any event, ns.
    latest: u64,
    cpus: CpuStates,
}

impl Cuts {
    /// Creates cuts in this time (ns), and after this many bytes.
    pub(super) fn new(every: u64, most: u64) -> Self {
        Self { every, most, last: 0, bytes: 0, latest: 0, cpus: CpuStates::default() }
    }

    /// Takes an input.
    #[inline]
    pub(super) fn input(&mut self, input: &Input<'_>) {
        match *input {
            Input::Record(
                record @ (Record::Idle(_) | Record::Frequency(_) | Record::Hotplug(_) | Record::Lost { .. }),
            ) => self.cpus.take(record),
            Input::PowerBegins { topology, begin, initial, .. } => {
                self.cpus.begin(topology, initial);
                self.last = begin;
            }
            _ => {}
        }
    }

    /// Takes the size of a block, and the latest time in it (ns).
    pub(super) fn block(&mut self, bytes: u64, latest: u64) {
        self.bytes += bytes;
        self.latest = self.latest.max(latest);
    }

    /// Whether a cut is due, now that everything up to a time (ns) was taken: the last one was long ago, or there are many
    /// bytes since.
    pub(super) fn is_due(&self, until: u64) -> bool {
        let is_long_ago = until.saturating_sub(self.last) >= self.every;
        // At the end of a run there is none: nothing comes after it.
        self.cpus.are_known() && until != u64::MAX && (is_long_ago || self.bytes >= self.most)
    }

    /// Cuts, after the event of this number, where everything up to a time (ns) was taken. All blocks have ended.
    pub(super) fn cut(&mut self, until: u64, number: u64) -> Kept {
        (self.last, self.bytes) = (until, 0);
        // Counters and other marks without an order come as soon as they are read, ahead of that time.
        let begin_ns = until.max(self.latest.min(until.saturating_add(AHEAD)));
        Kept { begin_ns, first_event: number + 1, initial: self.cpus.now() }
    }
}
