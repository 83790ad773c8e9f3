//! Exact totals of threads with lanes, which most sections find without a search.

use nntrace_common::record::{Total, TotalKey};
use rustc_hash::FxHashMap;

/// Totals at most: only a program that wants to harm us has more paths.
const MOST: usize = 65_536;
/// Totals that are found without a search. A power of two.
const RECENT: usize = 256;

/// Exact totals by process, path and the application's phases.
pub(super) struct LaneTotals {
    all: Vec<(TotalKey, Total)>,
    places: FxHashMap<TotalKey, usize>,
    /// Places in `all` that were used, by [`slot`].
    recent: Box<[usize; RECENT]>,
}

impl Default for LaneTotals {
    fn default() -> Self {
        Self { all: Vec::new(), places: FxHashMap::default(), recent: Box::new([0; RECENT]) }
    }
}

/// Returns the place of a key's total in [`LaneTotals::recent`]. Paths are hashes already.
#[inline]
const fn slot(key: &TotalKey) -> usize {
    (key.path ^ key.tgid as u64 ^ (key.tid as u64) << 8 ^ key.slot as u64) as usize & (RECENT - 1)
}

impl LaneTotals {
    /// Returns the total under a key, if there is one.
    #[inline]
    pub(super) fn get_mut(&mut self, key: &TotalKey) -> Option<&mut Total> {
        let place = self.recent[slot(key)];
        if self.all.get(place).is_some_and(|(known, _)| known == key) {
            return self.all.get_mut(place).map(|(_, total)| total);
        }
        let place = *self.places.get(key)?;
        self.recent[slot(key)] = place;
        self.all.get_mut(place).map(|(_, total)| total)
    }

    /// Adds a total under a new key; `false` when there is no room.
    #[cold]
    pub(super) fn insert(&mut self, key: TotalKey, total: Total) -> bool {
        let has_room = self.all.len() < MOST;
        if has_room {
            self.places.insert(key, self.all.len());
            self.all.push((key, total));
        }
        has_room
    }

    /// Returns all totals.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(TotalKey, Total)> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn totals_are_those_of_a_plain_map(adds in prop::collection::vec((0..900_u64, 1..3_u32), 0..4_000)) {
            let mut totals = LaneTotals::default();
            let mut plain: FxHashMap<TotalKey, Total> = FxHashMap::default();
            for (path, tgid) in adds {
                let (key, one) = (TotalKey::new(tgid, path), Total { count: 1, own: path, exclusive: 2 });
                plain.entry(key).or_default().add(&one);
                match totals.get_mut(&key) {
                    Some(total) => total.add(&one),
                    None => prop_assert!(totals.insert(key, one)),
                }
            }
            let found: FxHashMap<TotalKey, Total> = totals.iter().copied().collect();
            prop_assert_eq!(found, plain);
        }
    }
}
