//! The kernel's run-time statistics of BPF programs. They make every program of the machine slower, by some 0.1 µs a run, so
//! they are on until enough runs were seen, and a part of the time from then on.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use aya::sys::{Stats, enable_stats};
use nntrace_common::time_count::TimeCount;

use super::Kernel;

/// Runs of mark programs that are enough for a mean.
const ENOUGH_MARKS: u64 = 1000;
/// Runs of power programs after which no marks are waited for.
const ENOUGH_POWER_EVENTS: u64 = 100_000;
/// Time between two looks at how many runs there were.
const PATIENCE: Duration = Duration::from_millis(100);
/// Length of a sample.
const SAMPLE: Duration = Duration::from_millis(100);
/// Time between two samples. Switching interrupts all CPUs, those that are idle too: not each second.
const BETWEEN: Duration = Duration::from_millis(9_900);

/// The statistics, as far as this user may enable them.
pub(super) struct Statistics {
    /// Enables them for as long as it is open.
    enabled: Option<OwnedFd>,
    phase: Phase,
    /// When the phase began.
    since: Instant,
}

/// Course of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not allowed.
    Refused,
    /// On until there are enough runs.
    First,
    /// On for a sample.
    Sample,
    /// Off until the next sample.
    Pause,
}

impl Statistics {
    /// Enables the statistics, where this user may.
    pub(super) fn start() -> Self {
        let enabled = enable_stats(Stats::RunTime).ok();
        let phase = if enabled.is_some() { Phase::First } else { Phase::Refused };
        Self { enabled, phase, since: Instant::now() }
    }

    /// Enters a phase.
    fn enter(&mut self, phase: Phase) {
        self.enabled = match phase {
            Phase::First | Phase::Sample => enable_stats(Stats::RunTime).ok(),
            Phase::Refused | Phase::Pause => None,
        };
        self.phase = phase;
        self.since = Instant::now();
    }
}

/// Returns the phase after a time in another one; `costs` are those of mark and power programs so far.
fn next(phase: Phase, elapsed: Duration, costs: impl FnOnce() -> (TimeCount, TimeCount)) -> Phase {
    match phase {
        Phase::First if elapsed >= PATIENCE => {
            let (marks, power) = costs();
            let is_enough = marks.count >= ENOUGH_MARKS || power.count >= ENOUGH_POWER_EVENTS;
            if is_enough { Phase::Pause } else { Phase::First }
        }
        Phase::Sample if elapsed >= SAMPLE => Phase::Pause,
        Phase::Pause if elapsed >= BETWEEN => Phase::Sample,
        same => same,
    }
}

impl Kernel {
    /// Switches the statistics on or off when it is time: to be called ten times a second.
    pub(crate) fn sample_statistics(&mut self) {
        let Statistics { phase, since, .. } = self.statistics;
        let elapsed = since.elapsed();
        let then = next(phase, elapsed, || self.read_costs());
        if then != phase {
            self.statistics.enter(then);
        } else if phase == Phase::First && elapsed >= PATIENCE {
            self.statistics.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_on_until_there_are_enough_runs_and_then_for_samples() {
        let marks = |count| move || (TimeCount::new(1, count), TimeCount::default());
        let after = |phase, elapsed, count| next(phase, elapsed, marks(count));
        assert_eq!(after(Phase::First, PATIENCE / 2, ENOUGH_MARKS), Phase::First, "not looked at");
        assert_eq!(after(Phase::First, PATIENCE, ENOUGH_MARKS - 1), Phase::First);
        assert_eq!(after(Phase::First, PATIENCE, ENOUGH_MARKS), Phase::Pause);
        assert_eq!(after(Phase::Pause, SAMPLE, 0), Phase::Pause);
        assert_eq!(after(Phase::Pause, BETWEEN, 0), Phase::Sample);
        assert_eq!(after(Phase::Sample, SAMPLE, 0), Phase::Pause);
        assert_eq!(after(Phase::Refused, BETWEEN, 0), Phase::Refused);
        let power = || (TimeCount::default(), TimeCount::new(1, ENOUGH_POWER_EVENTS));
        assert_eq!(next(Phase::First, PATIENCE, power), Phase::Pause, "no marks come");
    }
}
