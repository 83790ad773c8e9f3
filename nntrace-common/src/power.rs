//! State of one CPU: idle or running, and the requested frequency; one event at a time, in constant time.
//!
//! Source: the power contract, section 1. Two small state machines with one writer each, because the kernel reports
//! them from different places: `cpu_idle` always comes on the CPU concerned, `cpu_frequency` on whichever CPU changes
//! the policy. So [`CpuIdle`] is written by its own CPU only, and [`CpuFrequency`], written by the policy, reads the
//! other's running clock; nothing needs a lock, and the slices add up to the running time exactly.

use crate::{diagnostic::DiagnosticKind, verifier_bounds::masked};

/// `state` of a `cpu_idle` event that ends an idle period (`PWR_EVENT_EXIT`, printed as 4294967295 or -1).
pub const IDLE_EXIT: u32 = u32::MAX;

/// Idle states in the tables of one CPU. The kernel's limit is 10 (`CPUIDLE_STATE_MAX`).
pub const MAX_IDLE_STATES: usize = 16;

/// CPUs of a policy that a frequency event applies to; those of a larger one count by their own events.
pub const MAX_POLICY_CPUS: usize = 64;

/// Activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Activity {
    /// Running.
    Running,
    /// Idle, in this state of its own table.
    Idle(u32),
    /// Idle, in an unknown state.
    IdleUnknown,
    /// Not online.
    Offline,
    /// Unknown.
    Unknown,
}

impl Activity {
    const RUNNING: u32 = IDLE_EXIT;
    const IDLE_UNKNOWN: u32 = u32::MAX - 1;
    const OFFLINE: u32 = u32::MAX - 2;
    const UNKNOWN: u32 = u32::MAX - 3;

    /// Returns the activity that a `cpu_idle` event with this `state` begins.
    #[must_use]
    #[inline(always)]
    pub const fn after_event(state: u32) -> Self {
        Self::from_code(state)
    }

    #[inline(always)]
    const fn from_code(code: u32) -> Self {
        match code {
            Self::RUNNING => Self::Running,
            Self::IDLE_UNKNOWN => Self::IdleUnknown,
            Self::OFFLINE => Self::Offline,
            Self::UNKNOWN => Self::Unknown,
            state => Self::Idle(state),
        }
    }

    #[inline(always)]
    const fn code(self) -> u32 {
        match self {
            Self::Running => Self::RUNNING,
            Self::IdleUnknown => Self::IDLE_UNKNOWN,
            Self::Offline => Self::OFFLINE,
            Self::Unknown => Self::UNKNOWN,
            Self::Idle(state) => state,
        }
    }
}

/// Interval of one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Activity of the CPU.
    pub activity: Activity,
    /// Begin, ns.
    pub begin: u64,
    /// End, ns; never before `begin`.
    pub end: u64,
}

/// Total time and number of stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Residency {
    /// Total time, ns.
    pub ns: u64,
    /// Number of stays.
    pub hits: u64,
    /// Shortest stay, ns; meaningless without hits.
    pub min_ns: u64,
    /// Longest stay, ns.
    pub max_ns: u64,
}

impl Residency {
    /// No stay.
    pub const NONE: Self = Self { ns: 0, hits: 0, min_ns: u64::MAX, max_ns: 0 };

    /// Adds a stay of this length, ns. One without a length is no hit.
    #[inline(always)]
    pub fn add(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.ns = self.ns.wrapping_add(ns);
        self.hits = self.hits.wrapping_add(1);
        if ns < self.min_ns {
            self.min_ns = ns;
        }
        if ns > self.max_ns {
            self.max_ns = ns;
        }
    }
}

/// Anomaly of a `cpu_idle` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAnomaly {
    /// Enter while in an idle state: the open stay is closed.
    EnterWhileIdle,
    /// Exit while running: ignored.
    ExitWhileRunning,
}

impl From<IdleAnomaly> for DiagnosticKind {
    fn from(anomaly: IdleAnomaly) -> Self {
        match anomaly {
            IdleAnomaly::EnterWhileIdle => Self::EnterWhileIdle,
            IdleAnomaly::ExitWhileRunning => Self::ExitWhileRunning,
        }
    }
}

/// Effect of a `cpu_idle` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleStep {
    /// Interval that it closed; `None` when nothing changed.
    pub closed: Option<Interval>,
    /// Anomaly, if any.
    pub anomaly: Option<IdleAnomaly>,
}

/// Knowledge about the time before the first event of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Start {
    /// No event yet. If the first one enters a state, the CPU was running all the time.
    Open,
    /// The first event entered a state: the CPU was running.
    WasRunning,
    /// The CPU was not running, or its state was read from the kernel.
    Settled,
}

/// Idle state machine with exact totals, written by the `cpu_idle` events of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CpuIdle {
    /// Odd while a write is in progress: readers try again if it is odd or has changed.
    pub sequence: u32,
    /// Code of the current [`Activity`].
    code: u32,
    /// Knowledge about the time before the first event.
    start: Start,
    /// Transition records of this CPU without room in their ring.
    pub lost: u32,
    /// Begin of the current activity, ns.
    since: u64,
    /// Time of the last frequency change, ns: it splits running intervals.
    frequency_since: u64,
    /// Running time of the closed intervals, ns.
    running_ns: u64,
    /// Number of such intervals, each frequency counted separately.
    running_hits: u64,
    /// Time idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Time offline, ns.
    pub offline_ns: u64,
    /// Time in an unknown activity, ns.
    pub unknown_ns: u64,
    /// Time in each idle state; the last one includes deeper ones.
    pub idle: [Residency; MAX_IDLE_STATES],
}

impl CpuIdle {
    /// Creates the state in which nothing is known since `begin` (ns), the begin of the window.
    #[must_use]
    pub const fn starting_at(begin: u64) -> Self {
        Self {
            sequence: 0,
            code: Activity::UNKNOWN,
            start: Start::Open,
            lost: 0,
            since: begin,
            frequency_since: 0,
            running_ns: 0,
            running_hits: 0,
            idle_unknown_ns: 0,
            offline_ns: 0,
            unknown_ns: 0,
            idle: [Residency::NONE; MAX_IDLE_STATES],
        }
    }

    /// Returns the current activity.
    #[must_use]
    #[inline(always)]
    pub const fn activity(&self) -> Activity {
        Activity::from_code(self.code)
    }

    /// Returns the begin of the current activity, ns.
    #[must_use]
    #[inline(always)]
    pub const fn since(&self) -> u64 {
        self.since
    }

    /// Takes a `cpu_idle` event at `now` (ns): `state` is entered, or idle is left when it is [`IDLE_EXIT`].
    #[inline(always)]
    pub fn event(&mut self, now: u64, state: u32) -> IdleStep {
        let next = Activity::after_event(state);
        let current = self.activity();
        let mut anomaly = None;
        if matches!(current, Activity::Running) && state == IDLE_EXIT {
            return IdleStep { closed: None, anomaly: Some(IdleAnomaly::ExitWhileRunning) };
        }
        if matches!(current, Activity::Idle(_)) && state != IDLE_EXIT {
            anomaly = Some(IdleAnomaly::EnterWhileIdle);
        }
        let before = if !matches!(self.start, Start::Open) {
            current
        } else if state == IDLE_EXIT {
            self.start = Start::Settled;
            Activity::IdleUnknown
        } else {
            self.start = Start::WasRunning;
            Activity::Running
        };
        IdleStep { closed: Some(self.change(now, before, next)), anomaly }
    }

    /// Changes the activity to `next` at `now` (ns); the one before was known.
    #[inline(always)]
    pub fn set(&mut self, now: u64, next: Activity) -> Interval {
        if matches!(self.start, Start::Open) {
            self.start = Start::Settled;
        }
        self.change(now, self.activity(), next)
    }

    /// Takes the CPU offline at `now` (ns), or online when it runs its first instruction; `None` when nothing
    /// changes.
    #[inline(always)]
    pub fn hotplug(&mut self, now: u64, online: bool) -> Option<Interval> {
        match (online, self.activity()) {
            (true, Activity::Offline) => Some(self.change(now, Activity::Offline, Activity::Running)),
            (true, _) | (false, Activity::Offline) => None,
            (false, mut before) => {
                if matches!(self.start, Start::Open) {
                    // It was running to be taken down, and left no idle state for that.
                    self.start = Start::WasRunning;
                    before = Activity::Running;
                }
                Some(self.change(now, before, Activity::Offline))
            }
        }
    }

    /// Takes the CPU's activity at the begin of the window, which was read elsewhere, after everything was attached.
    /// It counts where the events leave a gap: as the activity, if there is no event so far, and as the idle state, if
    /// the first event left one.
    pub fn began_as(&mut self, read: Activity) {
        match (self.start, read) {
            (Start::Open, _) => {
                self.start = if read == Activity::Running { Start::WasRunning } else { Start::Settled };
                self.code = read.code();
            }
            (Start::Settled, Activity::Idle(_)) => {
                // Only the time before the first event is idle in an unknown state.
                let ns = core::mem::take(&mut self.idle_unknown_ns);
                self.add(&Interval { activity: read, begin: 0, end: ns });
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn change(&mut self, now: u64, before: Activity, next: Activity) -> Interval {
        let begin = self.since;
        let end = if now < begin { begin } else { now };
        let interval = Interval { activity: before, begin, end };
        self.add(&interval);
        self.code = next.code();
        self.since = end;
        interval
    }

    /// Adds a closed interval to the totals.
    #[inline(always)]
    fn add(&mut self, interval: &Interval) {
        let ns = interval.end - interval.begin;
        match interval.activity {
            Activity::Running => {
                self.running_ns = self.running_ns.wrapping_add(ns);
                let from =
                    if self.frequency_since > interval.begin { self.frequency_since } else { interval.begin };
                if interval.end > from {
                    self.running_hits = self.running_hits.wrapping_add(1);
                }
            }
            Activity::Idle(state) => {
                let last = MAX_IDLE_STATES as u32 - 1;
                let slot = if state < last { state } else { last };
                self.idle[masked(slot as usize, MAX_IDLE_STATES)].add(ns);
            }
            Activity::IdleUnknown => self.idle_unknown_ns = self.idle_unknown_ns.wrapping_add(ns),
            Activity::Offline => self.offline_ns = self.offline_ns.wrapping_add(ns),
            Activity::Unknown => self.unknown_ns = self.unknown_ns.wrapping_add(ns),
        }
    }

    /// Closes the open interval at `end` (ns), the end of the window.
    pub fn finish(&mut self, end: u64) {
        self.change(end, self.activity(), self.activity());
    }

    /// Returns the knowledge about the time before the first event.
    #[must_use]
    #[inline(always)]
    pub const fn start(&self) -> Start {
        self.start
    }

    /// Returns the running time and intervals up to `now` (ns). Before the first event the CPU is presumed to run.
    #[must_use]
    #[inline(always)]
    pub fn running_clock(&self, now: u64) -> RunningClock {
        let (clock, open) = self.running_clock_and_open(now);
        RunningClock { hits: clock.hits.wrapping_add(open), ..clock }
    }

    /// Returns the running time up to `now` (ns) with the closed intervals, and the number of open ones: zero or one.
    #[inline(always)]
    fn running_clock_and_open(&self, now: u64) -> (RunningClock, u64) {
        let mut clock = RunningClock { ns: self.running_ns, hits: self.running_hits };
        let mut open = 0;
        let presumed = matches!(self.start, Start::Open);
        if (presumed || matches!(self.activity(), Activity::Running)) && now > self.since {
            clock.ns = clock.ns.wrapping_add(now - self.since);
            open = u64::from(now > self.frequency_since);
        }
        (clock, open)
    }
}

/// Total running time of a CPU, and its intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RunningClock {
    /// Running time, ns.
    pub ns: u64,
    /// Number of intervals.
    pub hits: u64,
}

/// Running time at one requested frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencySlice {
    /// Frequency, kHz; 0 when unknown.
    pub khz: u32,
    /// Running time, ns. Negative only to correct the result of an earlier torn read.
    pub ns: i64,
    /// Number of intervals.
    pub hits: i64,
    /// Whether it is presumed, which holds if [`CpuIdle::start`] becomes [`Start::WasRunning`].
    pub presumed: bool,
}

impl FrequencySlice {
    /// Whether the slice counts, with this knowledge about the CPU's start.
    #[must_use]
    pub const fn holds(&self, start: Start) -> bool {
        !self.presumed || matches!(start, Start::WasRunning)
    }
}

/// Requested frequency of one CPU, written by the `cpu_frequency` events of its policy, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CpuFrequency {
    khz: u32,
    /// 1 when `at_change` was read while the CPU was only presumed to run.
    presumed: u32,
    /// Running clock at the last change, without the open interval in `hits`.
    at_change: RunningClock,
    /// Odd while a change is being added to the totals: readers of both try again if it is odd or has changed.
    pub sequence: u64,
}

impl CpuFrequency {
    /// Unknown frequency, without any running time.
    pub const UNKNOWN: Self = Self::requested(0);

    /// Creates the state with this frequency (kHz, 0 for unknown) from the begin on.
    #[must_use]
    pub const fn requested(khz: u32) -> Self {
        Self { khz, presumed: 0, at_change: RunningClock { ns: 0, hits: 0 }, sequence: 0 }
    }

    /// Returns the requested frequency, kHz; 0 when unknown.
    #[must_use]
    #[inline(always)]
    pub const fn khz(&self) -> u32 {
        self.khz
    }

    /// Takes a `cpu_frequency` event at `now` (ns): returns the slice at the old frequency, or `None` when it is the
    /// same.
    #[inline(always)]
    pub fn event(&mut self, idle: &mut CpuIdle, now: u64, khz: u32) -> Option<FrequencySlice> {
        if khz == self.khz {
            return None;
        }
        // Read once: the CPU may continue in between, and time at the old frequency must not count for the new one.
        let (clock, open) = idle.running_clock_and_open(now);
        let slice = self.slice_until(idle, RunningClock { hits: clock.hits.wrapping_add(open), ..clock });
        self.at_change = clock;
        self.presumed = u32::from(slice.presumed);
        idle.frequency_since = now;
        self.khz = khz;
        Some(slice)
    }

    /// Returns the slice at the current frequency up to `now` (ns), still open.
    #[must_use]
    #[inline(always)]
    pub fn slice(&self, idle: &CpuIdle, now: u64) -> FrequencySlice {
        self.slice_until(idle, idle.running_clock(now))
    }

    /// Returns the slice at the current frequency up to a reading of the running clock.
    #[inline(always)]
    fn slice_until(&self, idle: &CpuIdle, clock: RunningClock) -> FrequencySlice {
        let refuted = self.presumed != 0 && matches!(idle.start, Start::Settled);
        let from = if refuted { RunningClock { ns: 0, hits: 0 } } else { self.at_change };
        FrequencySlice {
            khz: self.khz,
            ns: clock.ns.wrapping_sub(from.ns).cast_signed(),
            hits: clock.hits.wrapping_sub(from.hits).cast_signed(),
            presumed: matches!(idle.start, Start::Open),
        }
    }
}

#[cfg(test)]
mod tests;
