//! A sorted map of a few keys that is looked at with each event: frequencies, idle states.

/// Values by key, in the order of the keys.
#[derive(Clone, Debug)]
pub(crate) struct SmallMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    /// The value of a key; `new` where there is none yet.
    #[inline]
    pub(crate) fn entry(&mut self, key: K, new: V) -> &mut V {
        self.entry_or(key, || new)
    }

    /// The value of a key; made by `new` where there is none yet.
    #[inline]
    pub(crate) fn entry_or(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        // From the start: a search by halves costs more than the few that are passed by.
        let place = self.0.iter().position(|(known, _)| *known >= key).unwrap_or(self.0.len());
        if self.0.get(place).is_none_or(|(known, _)| *known != key) {
            self.0.insert(place, (key, new()));
        }
        &mut self.0[place].1
    }

    /// The value of a key.
    #[must_use]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

impl<K, V> IntoIterator for SmallMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_map(keys in proptest::collection::vec(0_u8..9, 0..60)) {
            let (mut few, mut map) = (SmallMap::default(), BTreeMap::new());
            for key in keys {
                *few.entry(key, 0) += 1;
                *map.entry(key).or_insert(0) += 1;
                prop_assert_eq!(few.get(key), map.get(&key));
            }
            prop_assert_eq!(few.into_iter().collect::<Vec<_>>(), map.into_iter().collect::<Vec<_>>());
        }
    }
}
