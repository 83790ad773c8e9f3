//! How many of a few kinds there are, which change with each event: CPUs by frequency or idle state.

/// Counts by key, in the order of the keys.
///
/// A key that is counted out stays with a count of 0: mostly it soon comes back, and moving the others takes longer than
/// passing by it.
#[derive(Clone, Debug)]
pub(crate) struct SmallCounts<K>(Vec<(K, u32)>);

/// Number of keys with which those without a count are dropped before there is another one.
const MANY: usize = 16;

impl<K> Default for SmallCounts<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy> SmallCounts<K> {
    /// Counts one into a key.
    #[inline]
    pub(crate) fn add(&mut self, key: K) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => self.insert(key),
        }
    }

    #[cold]
    fn insert(&mut self, key: K) {
        if self.0.len() >= MANY {
            self.0.retain(|(_, count)| *count > 0);
        }
        let place = self.0.partition_point(|(known, _)| *known < key);
        self.0.insert(place, (key, 1));
    }

    /// Counts one out of a key that it was counted into.
    #[inline]
    pub(crate) fn take(&mut self, key: K) {
        let count = self.0.iter_mut().find(|(known, count)| *known == key && *count > 0);
        debug_assert!(count.is_some(), "one is counted out of the key that it was counted into");
        if let Some((_, count)) = count {
            *count -= 1;
        }
    }

    /// Returns the lowest key with a count.
    #[must_use]
    #[inline]
    pub(crate) fn first(&self) -> Option<K> {
        self.0.iter().find(|(_, count)| *count > 0).map(|(key, _)| *key)
    }

    /// Returns the highest key with a count.
    #[must_use]
    #[inline]
    pub(crate) fn last(&self) -> Option<K> {
        self.0.iter().rev().find(|(_, count)| *count > 0).map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_and_the_last_are_those_of_a_sorted_map(
            steps in proptest::collection::vec((0_u8..40, any::<bool>()), 0..300),
        ) {
            let (mut counts, mut map) = (SmallCounts::default(), BTreeMap::new());
            for (key, adds) in steps {
                if adds {
                    counts.add(key);
                    *map.entry(key).or_insert(0) += 1;
                } else if let Some(count) = map.get_mut(&key) {
                    counts.take(key);
                    *count -= 1;
                    if *count == 0 {
                        map.remove(&key);
                    }
                }
                prop_assert_eq!(counts.first(), map.keys().next().copied());
                prop_assert_eq!(counts.last(), map.keys().next_back().copied());
            }
        }
    }
}
