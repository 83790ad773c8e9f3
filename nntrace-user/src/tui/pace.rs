//! The interval of the live view, and how it is changed.

use std::time::Duration;

/// Intervals, ms.
const STEPS: [u64; 9] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/// Change of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A shorter interval.
    Faster,
    /// A longer interval.
    Slower,
}

impl Pace {
    /// Returns the next interval in that direction; the same at its end.
    #[must_use]
    pub fn of(self, interval: Duration) -> Duration {
        let mut steps = STEPS.into_iter().map(Duration::from_millis);
        let next = match self {
            Self::Faster => steps.rfind(|step| *step < interval),
            Self::Slower => steps.find(|step| *step > interval),
        };
        next.unwrap_or(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_to_both_ends_and_no_further() {
        let ms = Duration::from_millis;
        let from = |start: u64, pace: Pace| {
            let steps = std::iter::successors(Some(ms(start)), |interval| Some(pace.of(*interval)));
            steps.take(4).map(|interval| interval.as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(from(1_000, Pace::Faster), [1_000, 500, 200, 100]);
        assert_eq!(from(300, Pace::Faster), [300, 200, 100, 100]);
        assert_eq!(from(300, Pace::Slower), [300, 500, 1_000, 2_000]);
        assert_eq!(from(20_000, Pace::Slower), [20_000, 30_000, 60_000, 60_000]);
        // One that was asked for on the command line is kept, also beyond the ends.
        assert_eq!((Pace::Faster.of(ms(50)), Pace::Slower.of(ms(90_000))), (ms(50), ms(90_000)));
    }
}
