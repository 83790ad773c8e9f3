//! Job of a device from when it was queued until it ended, and the thread that queued it.

use nntrace_common::layer::Tag;

/// Thread that queued a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitter {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Innermost section that it was in: layer and phase, hash of its name.
    pub section: Option<(Tag, u64)>,
}

/// Job that has ended, or is open when the window ends. Times are ns, and not before the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Number of its ring.
    pub ring: u32,
    /// Thread that queued it; `None` where that was not seen.
    pub submitter: Option<Submitter>,
    /// When it was queued; `None` where that was not seen.
    pub queued: Option<u64>,
    /// Whether it was queued in the window.
    pub is_whole: bool,
    /// When the last fence that it depends on was signaled, if that was after it was queued; else when it was queued.
    pub ready: u64,
    /// When it became the oldest job of the device on its ring; `None` if it never was.
    pub started: Option<u64>,
    /// When it ended.
    pub ended: u64,
    /// Part of the time from [`ready`](Self::ready) on in which jobs of other processes ran, ns.
    pub behind_others: u64,
    /// Way it ended.
    pub end: End,
}

impl Job {
    /// Returns the time in which it ran, ns.
    #[must_use]
    pub(crate) fn running_ns(&self) -> u64 {
        self.started.map_or(0, |started| self.ended - started)
    }
}

/// Way in which a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Completed by the device.
    Done,
    /// Its fence was signaled before it was handed to the device.
    Canceled,
    /// An event of it was lost: it was not seen to be handed over, or had ended when a later one did.
    Lost,
    /// It has not ended.
    Open,
}
