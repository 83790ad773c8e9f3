//! Keys and values of the maps that are not of one thread.

/// Value in the table of targets: the process is traced.
pub const TARGET: u8 = 1;
/// Value in the table of targets: the process is traced, and may be stopped while its libraries are probed.
pub const TARGET_TO_HOLD: u8 = 2;

/// Key of the totals: a process, a path of tags, and a slot in the application's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TotalKey {
    /// Path of tags.
    pub path: u64,
    /// Process id.
    pub tgid: u32,
    /// 0; for frames of a thread with interface calls only so far, that thread: they count once it takes part.
    pub tid: u32,
    /// Number of the last change of the application's phases before the frames began; [`ANY_SLOT`] for frames of any.
    pub slot: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Slot of the totals that the table has no room for by changes of the application's phases.
pub const ANY_SLOT: u32 = u32::MAX;

impl TotalKey {
    /// Returns the key of one path of a process whose threads take part.
    #[must_use]
    pub const fn new(tgid: u32, path: u64) -> Self {
        Self { path, tgid, tid: 0, slot: 0, reserved: 0 }
    }
}

/// Totals of the frames of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Total {
    /// Number of closed frames.
    pub count: u64,
    /// Own time, ns.
    pub own: u64,
    /// Exclusive time, ns.
    pub exclusive: u64,
}

impl Total {
    /// Adds other totals, saturating: a trace may contain any time.
    pub const fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.own = self.own.saturating_add(other.own);
        self.exclusive = self.exclusive.saturating_add(other.exclusive);
    }
}

/// Key of the running time: a CPU at a requested frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FrequencyKey {
    /// CPU number.
    pub cpu: u32,
    /// Frequency, kHz; 0 when unknown.
    pub khz: u32,
    /// 1 for time in which the CPU was only presumed to run ([`crate::power::FrequencySlice::presumed`]).
    pub presumed: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Counts of a CPU's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RingCount {
    /// Records produced.
    pub produced: u64,
    /// Records among these that found the ring full.
    pub dropped: u64,
    /// [`SchedRecord`](super::SchedRecord)s among those.
    pub sched_dropped: u64,
}
