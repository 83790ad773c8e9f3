//! Records in order of time. A trace that is in order is passed on as it comes; of one that is not, everything is kept
//! and sorted.
//!
//! Records of one instant are put into an order of their own, so that it makes no difference in which order the threads
//! of a file stand.

use nntrace_common::record::Record;

/// Where records wait for their turn.
pub struct Order {
    waiting: Vec<Record>,
    /// The instant of what waits, ns.
    now: u64,
    /// Whether everything is kept until the end.
    keeps_all: bool,
}

impl Order {
    /// For a trace that is in order of time, or for one that is not.
    #[must_use]
    pub fn new(keeps_all: bool) -> Self {
        Self { waiting: Vec::new(), now: 0, keeps_all }
    }

    /// It is `now` (ns): hands on what is older.
    #[inline]
    pub fn advance(&mut self, now: u64, sink: impl FnMut(&Record)) {
        if now > self.now && !self.keeps_all {
            self.now = now;
            self.release(sink);
        }
    }

    /// Keeps a record of the present instant.
    #[inline]
    pub fn push(&mut self, record: Record) {
        self.waiting.push(record);
    }

    /// Hands on all that is left, in order.
    pub fn release(&mut self, sink: impl FnMut(&Record)) {
        if self.waiting.len() > 1 {
            // Stable: the records of one thread keep their order.
            self.waiting.sort_by_key(|record| (record.time(), rank(record)));
        }
        self.waiting.iter().for_each(sink);
        self.waiting.clear();
    }
}

/// Order within one instant: what sections are assigned by comes before the sections.
fn rank(record: &Record) -> (u8, u32, u32) {
    match record {
        Record::Begin(begin) => (0, begin.tgid, begin.tid),
        Record::Span(span) => (1, span.tgid, span.tid),
        Record::Lost { cpu, .. } => (2, *cpu, 0),
        Record::Idle(event) | Record::Frequency(event) | Record::Hotplug(event) => (3, event.cpu, 0),
        Record::Fork(process) | Record::Exec(process) | Record::Exit(process) | Record::Loader(process) => {
            (4, process.tgid, process.tid)
        }
        // In the order of the trace: of one thread that goes from CPU to CPU, or of one CPU.
        Record::Sched(_) => (5, 0, 0),
    }
}
