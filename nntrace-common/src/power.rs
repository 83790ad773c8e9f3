//! What one CPU does: idle or running, and at which requested frequency; one event at a time, in constant time.
//!
//! Source: the power contract, section 1. Two small machines with one writer each, because the kernel reports them
//! from different places: `cpu_idle` always comes on the CPU concerned, `cpu_frequency` on whichever CPU changes
//! the policy. So [`CpuIdle`] is written by its own CPU only, and [`CpuFrequency`], written by the policy, reads
//! the other's running clock; nothing needs a lock, and the slices add up to the running time exactly.

use crate::{bounds::masked, diagnostic::DiagnosticKind};

/// `state` of a `cpu_idle` event that ends an idle period (`PWR_EVENT_EXIT`, printed as 4294967295 or -1).
pub const IDLE_EXIT: u32 = u32::MAX;

/// Idle states that the tables of one CPU hold. The kernel's limit is 10 (`CPUIDLE_STATE_MAX`).
pub const MAX_IDLE_STATES: usize = 16;

/// CPUs of one policy that a frequency event is applied to; those of a larger one count by their own events.
pub const MAX_POLICY_CPUS: usize = 64;

/// What a CPU does at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// It runs.
    Running,
    /// It is in this idle state of its own table.
    Idle(u32),
    /// It is idle, how deep is not known.
    IdleUnknown,
    /// It is not online.
    Offline,
    /// Not known.
    Unknown,
}

impl Activity {
    const RUNNING: u32 = IDLE_EXIT;
    const IDLE_UNKNOWN: u32 = u32::MAX - 1;
    const OFFLINE: u32 = u32::MAX - 2;
    const UNKNOWN: u32 = u32::MAX - 3;

    /// The activity that a `cpu_idle` event of this `state` begins.
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

/// A stretch of one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// What the CPU did.
    pub activity: Activity,
    /// From, ns.
    pub begin: u64,
    /// To, ns; never before `begin`.
    pub end: u64,
}

/// How long and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Residency {
    /// Sum, ns.
    pub ns: u64,
    /// Stays.
    pub hits: u64,
    /// Shortest stay, ns; meaningless without hits.
    pub min_ns: u64,
    /// Longest stay, ns.
    pub max_ns: u64,
}

impl Residency {
    /// Never.
    pub const NONE: Self = Self { ns: 0, hits: 0, min_ns: u64::MAX, max_ns: 0 };

    /// Adds a stay of so many ns. One of no length is no hit.
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

/// What was odd about a `cpu_idle` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAnomaly {
    /// It enters a state while in one: the open one is closed.
    EnterWhileIdle,
    /// It leaves idle while running: ignored.
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

/// What a `cpu_idle` event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleStep {
    /// The stretch that it closed; `None` when nothing changed.
    pub closed: Option<Interval>,
    /// What was odd.
    pub anomaly: Option<IdleAnomaly>,
}

/// What is known of the time before the first event of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Start {
    /// No event yet. Should the first one enter a state, the CPU was running all the time.
    Open,
    /// The first event entered a state: it was running.
    WasRunning,
    /// It was something else than running, or its state was read from the kernel.
    Settled,
}

/// Idle or running, with the exact totals: written by `cpu_idle` events of one CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CpuIdle {
    /// Odd while a writer is at work: a reader that sees it odd, or changed, reads again.
    pub sequence: u32,
    /// Code of the current [`Activity`].
    code: u32,
    /// How far the time before the first event is known, a [`Start`].
    start: Start,
    /// Transition records of this CPU that found their ring full.
    pub lost: u32,
    /// When the current activity began, ns.
    since: u64,
    /// When the frequency last changed, ns: splits stretches of running.
    frequency_since: u64,
    /// Running time of the stretches that are closed, ns.
    running_ns: u64,
    /// How many such stretches, each frequency counted by itself.
    running_hits: u64,
    /// Time idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Time offline, ns.
    pub offline_ns: u64,
    /// Time of which nothing is known, ns.
    pub unknown_ns: u64,
    /// Time in each idle state; the last one holds deeper ones too.
    pub idle: [Residency; MAX_IDLE_STATES],
}

impl CpuIdle {
    /// Nothing known since `begin` (ns), the begin of the window.
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

    /// What the CPU does now.
    #[must_use]
    #[inline(always)]
    pub const fn activity(&self) -> Activity {
        Activity::from_code(self.code)
    }

    /// Since when, ns.
    #[must_use]
    #[inline(always)]
    pub const fn since(&self) -> u64 {
        self.since
    }

    /// A `cpu_idle` event at `now` (ns): `state` is entered, or idle is left when it is [`IDLE_EXIT`].
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

    /// The CPU does `next` from `now` (ns) on; what came before was known.
    #[inline(always)]
    pub fn set(&mut self, now: u64, next: Activity) -> Interval {
        if matches!(self.start, Start::Open) {
            self.start = Start::Settled;
        }
        self.change(now, self.activity(), next)
    }

    /// The CPU goes offline at `now` (ns), or ran its first instruction after it was; `None` when that is nothing new.
    #[inline(always)]
    pub fn hotplug(&mut self, now: u64, online: bool) -> Option<Interval> {
        match (online, self.activity()) {
            (true, Activity::Offline) => Some(self.change(now, Activity::Offline, Activity::Running)),
            (true, _) | (false, Activity::Offline) => None,
            (false, mut before) => {
                if matches!(self.start, Start::Open) {
                    // It ran what took it down, and left no idle state for that.
                    self.start = Start::WasRunning;
                    before = Activity::Running;
                }
                Some(self.change(now, before, Activity::Offline))
            }
        }
    }

    /// What the CPU did when the window began was read elsewhere, after everything was attached. It holds for what
    /// its events leave open: until the first one, when there is none, and how deep it was idle, when that left idle.
    pub fn began_as(&mut self, read: Activity) {
        match (self.start, read) {
            (Start::Open, _) => {
                self.start = if read == Activity::Running { Start::WasRunning } else { Start::Settled };
                self.code = read.code();
            }
            (Start::Settled, Activity::Idle(_)) => {
                // Nothing but the time before the first event is idle of unknown depth.
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

    /// Adds a closed stretch to the totals.
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

    /// Closes what is open at `end` (ns), the end of the window.
    pub fn finish(&mut self, end: u64) {
        self.change(end, self.activity(), self.activity());
    }

    /// What is known of the time before the first event.
    #[must_use]
    #[inline(always)]
    pub const fn start(&self) -> Start {
        self.start
    }

    /// Running time and stretches of running up to `now` (ns). Before the first event it is presumed to run.
    #[must_use]
    #[inline(always)]
    pub fn running_clock(&self, now: u64) -> RunningClock {
        let (clock, open) = self.running_clock_and_open(now);
        RunningClock { hits: clock.hits.wrapping_add(open), ..clock }
    }

    /// The running time up to `now` (ns) with the stretches that are over, and how many are open: none, or one.
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

/// How long a CPU has been running, and in how many stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RunningClock {
    /// Running time, ns.
    pub ns: u64,
    /// Stretches.
    pub hits: u64,
}

/// Running time at one requested frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencySlice {
    /// Frequency, kHz; 0 when not known.
    pub khz: u32,
    /// Running time, ns. Negative only to take back what a torn read added before.
    pub ns: i64,
    /// Stretches.
    pub hits: i64,
    /// Whether it is a presumption, which holds if [`CpuIdle::start`] becomes [`Start::WasRunning`].
    pub presumed: bool,
}

impl FrequencySlice {
    /// Whether it counts, now that so much is known of the CPU's start.
    #[must_use]
    pub const fn holds(&self, start: Start) -> bool {
        !self.presumed || matches!(start, Start::WasRunning)
    }
}

/// The requested frequency of one CPU: written by `cpu_frequency` events of its policy, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CpuFrequency {
    khz: u32,
    /// 1 when `at_change` was taken while the CPU was only presumed to run.
    presumed: u32,
    /// What the running clock showed at the last change; its open stretch not counted in `hits`.
    at_change: RunningClock,
    /// Odd while a change is on its way into the totals: whoever reads both reads again then, or when it is another one
    /// after reading than before.
    pub sequence: u64,
}

impl CpuFrequency {
    /// Not known, and nothing run yet.
    pub const UNKNOWN: Self = Self::requested(0);

    /// This frequency (kHz, 0 for unknown) from the begin on.
    #[must_use]
    pub const fn requested(khz: u32) -> Self {
        Self { khz, presumed: 0, at_change: RunningClock { ns: 0, hits: 0 }, sequence: 0 }
    }

    /// The requested frequency, kHz; 0 when not known.
    #[must_use]
    #[inline(always)]
    pub const fn khz(&self) -> u32 {
        self.khz
    }

    /// A `cpu_frequency` event at `now` (ns): returns the slice at the old frequency, or `None` when it is the same.
    #[inline(always)]
    pub fn event(&mut self, idle: &mut CpuIdle, now: u64, khz: u32) -> Option<FrequencySlice> {
        if khz == self.khz {
            return None;
        }
        // Read once: the CPU may go on meanwhile, and what counts for the old frequency must not count for the new one.
        let (clock, open) = idle.running_clock_and_open(now);
        let slice = self.slice_until(idle, RunningClock { hits: clock.hits.wrapping_add(open), ..clock });
        self.at_change = clock;
        self.presumed = u32::from(slice.presumed);
        idle.frequency_since = now;
        self.khz = khz;
        Some(slice)
    }

    /// The slice at the current frequency up to `now` (ns), left open.
    #[must_use]
    #[inline(always)]
    pub fn slice(&self, idle: &CpuIdle, now: u64) -> FrequencySlice {
        self.slice_until(idle, idle.running_clock(now))
    }

    /// The slice at the current frequency until the running clock shows this.
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
