//! The window: the time that counts, for marks, power states and scheduling.

/// Both ends of the window, by `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// First instant, ns; `u64::MAX` while unknown.
    pub begin: u64,
    /// Last instant, ns; 0 while unknown.
    pub end: u64,
}

impl Window {
    /// Window that has not begun: its begin is set when everything is attached.
    pub const AHEAD: Self = Self { begin: u64::MAX, end: 0 };

    /// Whether `now` (ns) is after the window.
    #[must_use]
    #[inline(always)]
    pub const fn is_over(&self, now: u64) -> bool {
        self.end != 0 && now > self.end
    }

    /// Whether `now` (ns) is in the window.
    #[must_use]
    #[inline(always)]
    pub const fn contains(&self, now: u64) -> bool {
        now >= self.begin && !self.is_over(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_part_of_the_window() {
        let window = Window { begin: 10, end: 20 };
        let inside = [9, 10, 20, 21].map(|now| window.contains(now));
        assert_eq!(inside, [false, true, true, false]);
        assert_eq!([20, 21].map(|now| window.is_over(now)), [false, true]);
    }

    #[test]
    fn an_end_that_is_not_known_is_never_reached() {
        assert!(Window { begin: 10, end: 0 }.contains(u64::MAX));
        assert!(!Window::AHEAD.is_over(u64::MAX) && !Window::AHEAD.contains(1 << 62));
    }
}
