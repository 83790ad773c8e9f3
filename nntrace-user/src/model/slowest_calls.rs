//! The slowest calls of a function.

use std::cmp::Reverse;

/// Maximum number of calls kept.
const MOST: usize = 5;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowCall {
    /// Duration, less what is subtracted from it, ns.
    pub ns: u64,
    /// When it began, ns.
    pub begin: u64,
    /// Thread.
    pub tid: u32,
}

impl SlowCall {
    /// The order of calls: the slowest first, of equal ones the earliest, so that it does not matter in which order they come.
    const fn rank(&self) -> (Reverse<u64>, u64, u32) {
        (Reverse(self.ns), self.begin, self.tid)
    }
}

/// The slowest calls, the slowest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowestCalls(Vec<SlowCall>);

impl SlowestCalls {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a call.
    #[inline]
    pub(crate) fn add(&mut self, call: SlowCall) {
        // Calls that take the same time come often, and are not among the first then: no search for their place.
        if self.0.get(MOST - 1).is_none_or(|last| call.rank() < last.rank()) {
            self.insert(call);
        }
    }

    fn insert(&mut self, call: SlowCall) {
        let at = self.0.partition_point(|other| other.rank() <= call.rank());
        if at < MOST {
            self.0.truncate(MOST - 1);
            self.0.insert(at, call);
        }
    }

    /// Adds the calls of another part of the function.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|&call| self.add(call));
    }

    /// The calls, the slowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SlowCall> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_the_first_of_all_sorted(
            calls in prop::collection::vec((0..20_u64, 0..50_u64, 1..4_u32), 0..40),
            cut in 0..40_usize,
        ) {
            let mut all: Vec<SlowCall> =
                calls.iter().map(|&(ns, begin, tid)| SlowCall { ns, begin, tid }).collect();
            let (mut one, mut other) = (SlowestCalls::new(), SlowestCalls::new());
            let (left, right) = all.split_at(cut.min(all.len()));
            for &call in left {
                one.add(call);
            }
            for &call in right {
                other.add(call);
            }
            one.merge(&other);
            all.sort_by_key(|call| (Reverse(call.ns), call.begin, call.tid));
            all.truncate(MOST);
            prop_assert_eq!(one.iter().copied().collect::<Vec<_>>(), all);
        }
    }
}
