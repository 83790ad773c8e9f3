//! Times with counts: the sums of residency and of costs.

use core::ops::AddAssign;

/// Time, and the number of intervals, runs or changes in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct TimeCount {
    /// Time, ns.
    pub ns: u64,
    /// Number.
    pub count: u64,
}

impl TimeCount {
    /// Creates the sum of `count` intervals that take `ns` together.
    #[must_use]
    pub const fn new(ns: u64, count: u64) -> Self {
        Self { ns, count }
    }

    /// Returns the mean time, ns; `None` without any.
    #[must_use]
    pub const fn mean(&self) -> Option<u64> {
        self.ns.checked_div(self.count)
    }

    /// Adds a difference, which may be negative. So may the sum until all of its parts are there: two's complement
    /// then makes it right.
    #[inline]
    pub const fn change(&mut self, ns: i64, count: i64) {
        self.ns = self.ns.wrapping_add_signed(ns);
        self.count = self.count.wrapping_add_signed(count);
    }
}

impl AddAssign for TimeCount {
    fn add_assign(&mut self, other: Self) {
        self.ns += other.ns;
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_may_be_negative_until_it_is_whole() {
        let mut sum = TimeCount::default();
        sum.change(-70, -1);
        assert_eq!(sum.ns.cast_signed(), -70);
        sum.change(100, 3);
        assert_eq!(sum, TimeCount::new(30, 2));
        assert_eq!(sum.mean(), Some(15));
        assert_eq!(TimeCount::default().mean(), None);
    }
}
