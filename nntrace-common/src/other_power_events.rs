//! Power events besides idle and frequency events: counted exactly, and never part of residency.
//!
//! Sources: include/trace/events/power.h, drivers/cpuidle/cpuidle-psci.c, drivers/cpuidle/cpuidle.c.

use crate::time_count::TimeCount;

/// Interval that begins and ends, in a window that begins at a known time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OpenInterval {
    /// Begin of the window, ns: time before it does not count.
    from: u64,
    /// Begin of the open interval, ns; 0 when none is open.
    since: u64,
}

impl OpenInterval {
    /// Creates the state without an open interval, in a window that begins at `from` (ns).
    #[must_use]
    pub const fn starting_at(from: u64) -> Self {
        Self { from, since: 0 }
    }

    /// Whether `now` (ns) is in the window.
    #[must_use]
    #[inline(always)]
    pub const fn counts(&self, now: u64) -> bool {
        now >= self.from
    }

    /// Begins an interval at `now` (ns). An open one is dropped: its end was not seen.
    #[inline(always)]
    pub fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// Ends the interval at `now` (ns), and returns its length in the window. `None` when none was open, or it ended
    /// before.
    #[inline(always)]
    pub fn end(&mut self, now: u64) -> Option<u64> {
        let since = core::mem::take(&mut self.since);
        if since == 0 || now <= self.from {
            return None;
        }
        let begin = if since < self.from { self.from } else { since };
        Some(now.saturating_sub(begin))
    }
}

/// Evidence of one CPU. Only events on that CPU write it, except for its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CpuEvidence {
    /// Idle state currently requested from firmware.
    pub psci: OpenInterval,
    /// Parameter of that state.
    pub psci_parameter: u32,
    /// Always 0.
    pub reserved: u32,
    /// Sleeps shorter than the state's target residency, while a shallower one was enabled (`cpu_idle_miss`).
    pub above: u64,
    /// Sleeps long enough for the next deeper enabled state.
    pub below: u64,
    /// Last lower limit of the frequency, kHz; 0 when none came.
    pub min_khz: u32,
    /// Last upper limit, kHz; 0 when none came.
    pub max_khz: u32,
}

/// Key of the time in states requested from firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct PsciKey {
    /// CPU number.
    pub cpu: u32,
    /// The parameter of `CPU_SUSPEND`, whose bits are the platform's.
    pub parameter: u32,
}

/// Suspends of the system, by the clock that includes them (`CLOCK_BOOTTIME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Suspends {
    /// Current suspend.
    pub spell: OpenInterval,
    /// Completed suspends.
    pub total: TimeCount,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_counts_from_the_begin_of_the_window() {
        let mut spell = OpenInterval::starting_at(100);
        assert_eq!(spell.end(90), None);
        spell.begin(50);
        assert_eq!(spell.end(80), None, "it was over before");
        spell.begin(90);
        assert_eq!(spell.end(130), Some(30));
        assert_eq!(spell.end(140), None, "it is over");
        spell.begin(150);
        spell.begin(160);
        assert_eq!(spell.end(170), Some(10));
        assert!(spell.counts(100) && !spell.counts(99));
    }
}
