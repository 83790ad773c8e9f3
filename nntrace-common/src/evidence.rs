//! What the kernel tells about power besides idle and frequency events: counted exactly, and never part of what those
//! add up to.
//!
//! Sources: include/trace/events/power.h, drivers/cpuidle/cpuidle-psci.c, drivers/cpuidle/cpuidle.c.

use crate::time_count::TimeCount;

/// Something that begins and ends, in a window that begins at a known time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OpenInterval {
    /// Begin of the window, ns: what was before it does not count.
    from: u64,
    /// When it began, ns; 0 while it is not going on.
    since: u64,
}

impl OpenInterval {
    /// Not going on, in a window that begins at `from` (ns).
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

    /// It begins at `now` (ns). One that was going on is forgotten: its end was not seen.
    #[inline(always)]
    pub fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// It ends at `now` (ns): how long it was, in the window. `None` when it was not going on, or ended before.
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

/// What is told of one CPU. Only events on that CPU write it, but those of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CpuEvidence {
    /// The state that firmware is asked for at present.
    pub psci: OpenInterval,
    /// Its parameter.
    pub psci_parameter: u32,
    /// Always 0.
    pub reserved: u32,
    /// Sleeps shorter than the state's target residency, while a shallower one was enabled (`cpu_idle_miss`).
    pub above: u64,
    /// Sleeps long enough for the next deeper enabled state.
    pub below: u64,
    /// The last limits of the frequency, kHz; 0 when none came.
    pub min_khz: u32,
    /// The upper one.
    pub max_khz: u32,
}

/// Key of the time in states that firmware was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct PsciKey {
    /// The CPU.
    pub cpu: u32,
    /// The parameter of `CPU_SUSPEND`, whose bits are the platform's.
    pub parameter: u32,
}

/// Suspends of the machine, by the clock that goes on meanwhile (`CLOCK_BOOTTIME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Suspends {
    /// The present one.
    pub spell: OpenInterval,
    /// Those that are over.
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
