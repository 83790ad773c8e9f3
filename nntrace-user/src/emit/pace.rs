//! Times of a run that is played.

use std::{str::FromStr, time::Duration};

use nix::{
    errno::Errno,
    sys::time::TimeSpec,
    time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep},
};

/// Time before a mark for which its thread no longer sleeps, ns: a thread is woken by so much too late.
const SPIN: u64 = 50_000;

/// Speed of a run that is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// This many times as fast as it was.
    Times(f64),
    /// Without any waiting.
    Max,
}

impl FromStr for Speed {
    type Err = String;

    /// Reads `2x`, `0.5x`, `2` or `max`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let times = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
        match times {
            Ok(times) if (0.001..=1_000.0).contains(&times) => Ok(Self::Times(times)),
            _ => Err("expected a speed from 0.001x to 1000x, such as 2x or 0.5x, or max".into()),
        }
    }
}

/// Times at which steps are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Recorded time of the first step, ns.
    from: u64,
    /// Time at which it is due, ns.
    start: u64,
    speed: Speed,
}

impl Pace {
    /// Begins a run `after` that time from now.
    pub(super) fn starting(from: u64, speed: Speed, after: Duration) -> Self {
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Self { from, start: now().saturating_add(after), speed }
    }

    /// Returns the time at which what was at this recorded time is due, ns; `None` for at once.
    pub(super) fn due(&self, recorded: u64) -> Option<u64> {
        let after = recorded.saturating_sub(self.from);
        match self.speed {
            Speed::Max => None,
            // Without rounding.
            Speed::Times(1.0) => Some(self.start.saturating_add(after)),
            #[expect(clippy::cast_sign_loss, reason = "both are positive")]
            Speed::Times(times) => Some(self.start.saturating_add((after as f64 / times) as u64)),
        }
    }

    /// Waits for the time of a step; returns by how much it is too late then, ns, if it has a time.
    pub(super) fn wait(&self, recorded: u64) -> Option<u64> {
        let due = self.due(recorded)?;
        let mut now = now();
        if now + SPIN < due {
            sleep_until(due - SPIN);
        }
        loop {
            now = self::now();
            if now >= due {
                return Some(now - due);
            }
            std::hint::spin_loop();
        }
    }

    /// Sleeps until some time before a step.
    pub(super) fn sleep_until_before(&self, recorded: u64, before: Duration) {
        let before = u64::try_from(before.as_nanos()).unwrap_or(u64::MAX);
        if let Some(due) = self.due(recorded) {
            sleep_until(due.saturating_sub(before));
        }
    }
}

/// Returns the time, ns.
pub(super) fn now() -> u64 {
    // Every kernel has this clock.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn sleep_until(time: u64) {
    let until = TimeSpec::from_duration(Duration::from_nanos(time));
    // A signal that does not end the process leaves the rest of the time.
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until)
        == Err(Errno::EINTR)
    {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read() {
        for (text, times) in [("1x", 1.0), ("2x", 2.0), ("0.5x", 0.5), ("3", 3.0)] {
            assert_eq!(text.parse(), Ok(Speed::Times(times)), "{text}");
        }
        assert_eq!("max".parse(), Ok(Speed::Max));
        for wrong in ["", "x", "0x", "-1x", "fast", "1e9x", "NaNx", "inf"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn steps_are_due_by_the_speed() {
        let pace = |speed| Pace { from: 1_000, start: 50_000, speed };
        assert_eq!(pace(Speed::Times(1.0)).due(3_000), Some(52_000));
        assert_eq!(pace(Speed::Times(2.0)).due(3_000), Some(51_000));
        assert_eq!(pace(Speed::Times(0.5)).due(3_000), Some(54_000));
        assert_eq!(pace(Speed::Times(2.0)).due(0), Some(50_000));
        assert_eq!(pace(Speed::Max).due(3_000), None);
    }

    #[test]
    fn nothing_comes_too_early() {
        let pace = Pace::starting(0, Speed::Times(1.0), Duration::ZERO);
        let due = pace.due(2_000_000).unwrap();
        let late = pace.wait(2_000_000).unwrap();
        assert!(now() >= due + late);
        assert_eq!(Pace::starting(0, Speed::Max, Duration::ZERO).wait(u64::MAX), None);
    }
}
