//! Timestamps that tell events of one time apart.

/// Timestamp of an event. Its order is that of time, and among events of one time that of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Time, ns.
    pub time: u64,
    /// Number of the event in the trace that it was read from, 0 where none is known: the kernel's own clock tells the events
    /// of a thread apart, the text of a trace has microseconds only.
    pub sequence: u32,
}

impl From<u64> for Stamp {
    /// Creates the timestamp of an event of which only the time (ns) is known.
    fn from(time: u64) -> Self {
        Self::new(time, 0)
    }
}

impl Stamp {
    /// Creates a timestamp.
    #[must_use]
    pub const fn new(time: u64, sequence: u32) -> Self {
        Self { time, sequence }
    }
}
