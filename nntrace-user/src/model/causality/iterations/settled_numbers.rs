//! Numbers of iterations that are settled, as ranges: most functions number theirs one after the other.

use std::collections::BTreeMap;

/// Ranges at most; of more, the one with the lowest numbers is forgotten.
const MOST_RANGES: usize = 1 << 6;

/// Set of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct SettledNumbers {
    /// First and last number of each range; between two ranges there is a gap.
    ranges: BTreeMap<u64, u64>,
}

impl SettledNumbers {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    pub(super) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let above = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        let last = above.unwrap_or(number);
        let below = self.ranges.range_mut(..number).next_back();
        match below.filter(|(_, end)| end.checked_add(1) == Some(number)) {
            Some((_, end)) => *end = last,
            None => drop(self.ranges.insert(number, last)),
        }
        if self.ranges.len() > MOST_RANGES {
            self.ranges.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(numbers in prop::collection::vec(prop_oneof![0..40_u64, u64::MAX - 3..=u64::MAX], 0..80)) {
            let (mut ranges, mut set) = (SettledNumbers::default(), BTreeSet::new());
            for number in numbers {
                ranges.insert(number);
                set.insert(number);
                for asked in (0..42).chain(u64::MAX - 5..=u64::MAX) {
                    prop_assert_eq!(ranges.contains(asked), set.contains(&asked), "{}", asked);
                }
            }
        }
    }

    #[test]
    fn scattered_numbers_take_bounded_memory() {
        let mut ranges = SettledNumbers::default();
        (0..10_000).for_each(|number| ranges.insert(number * 2));
        assert_eq!(ranges.ranges.len(), MOST_RANGES);
        assert!(ranges.contains(19_998) && !ranges.contains(0));
    }
}
