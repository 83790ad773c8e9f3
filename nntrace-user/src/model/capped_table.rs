//! Rows by key, up to a limit: when there is no room for another one, the smallest are summed under coarser keys,
//! in the end as `(others)`.
//!
//! Rows are summed many at a time, so that each record costs the same on average, and by what they add up to and their
//! age alone, so that equal input gives equal rows.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The name of the row that the smallest are summed as.
pub(crate) const OTHERS: &str = "(others)";
/// Hash of the name of functions that are summed: no name is known to have it.
pub(crate) const OTHERS_NAME: u64 = u64::MAX;
/// Number of the process that stands for those that are summed: no process that runs programs has it.
pub(crate) const OTHERS_PID: u32 = 0;

/// A key of rows.
pub(crate) trait Key: Copy + Eq + Hash {
    /// The key that a row is summed under when there is no room for it; `None` for what always stays.
    fn coarser(&self) -> Option<Self>;

    /// Whether it stands for rows that were summed.
    fn is_others(&self) -> bool;
}

/// Value under a key.
pub(crate) trait Row<K> {
    /// The larger, the longer it is kept separately.
    fn weight(&self) -> u64;

    /// Adds a row that there is no room for.
    fn add(&mut self, other: Self);

    /// Returns the row as the first of others under this key.
    #[must_use]
    fn into_others(self, _key: K) -> Self
    where
        Self: Sized,
    {
        self
    }
}

/// Rows by key, up to a limit.
#[derive(Clone, Debug)]
pub(crate) struct Capped<K, V> {
    most: usize,
    places: FxHashMap<K, u32>,
    rows: Vec<Entry<K, V>>,
    summed: u64,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Entry<K, V> {
    key: K,
    row: V,
    /// Whether rows had been summed before it came: one of its key may have been among them.
    is_late: bool,
}

/// The fewest rows that a bound can be.
const FEWEST: usize = 16;

impl<K: Key, V: Row<K>> Capped<K, V> {
    /// Creates an empty table for at most this many rows, and those that always stay.
    #[must_use]
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(FEWEST),
            places: FxHashMap::default(),
            rows: Vec::new(),
            summed: 0,
            generation: 0,
        }
    }

    /// How many rows were summed as others.
    #[must_use]
    pub(crate) fn summed(&self) -> u64 {
        self.summed
    }

    /// Changes whenever places do.
    #[must_use]
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The place of a key's row; made when it is new.
    #[inline]
    pub(crate) fn place(&mut self, key: K, make: impl FnOnce() -> V) -> u32 {
        match self.places.get(&key) {
            Some(&place) => place,
            None => self.insert(key, make()),
        }
    }

    #[cold]
    fn insert(&mut self, key: K, row: V) -> u32 {
        if self.rows.len() >= self.most {
            self.sum_smallest();
        }
        let place = self.rows.len() as u32;
        self.rows.push(Entry { key, row, is_late: self.summed > 0 });
        self.places.insert(key, place);
        place
    }

    /// The row at a place of this generation.
    #[inline]
    pub(crate) fn at(&mut self, place: u32) -> &mut V {
        &mut self.rows[place as usize].row
    }

    /// The row at a place, if there is one.
    #[inline]
    #[must_use]
    pub(crate) fn get(&self, place: u32) -> Option<&V> {
        self.rows.get(place as usize).map(|entry| &entry.row)
    }

    /// The row of a key; made when it is new.
    #[inline]
    pub(crate) fn row(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(key, make);
        self.at(place)
    }

    /// The row that a key is counted in, separately or as one of others.
    pub(crate) fn find(&mut self, key: K) -> Option<&mut V> {
        let place =
            std::iter::successors(Some(key), K::coarser).find_map(|key| self.places.get(&key).copied());
        place.map(|place| self.at(place))
    }

    /// Every row, in the order they came, and whether it may lack what was summed before it came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V, bool)> {
        self.rows.iter().map(|entry| (&entry.key, &entry.row, entry.is_late && !entry.key.is_others()))
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Sums the smallest quarter or more.
    #[cold]
    fn sum_smallest(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        let goal = self.most - self.most / 4;
        while self.rows.len() > goal {
            let can_go = self.rows.iter().enumerate().filter(|(_, entry)| entry.key.coarser().is_some());
            let mut order: Vec<(u64, usize)> = can_go.map(|(at, entry)| (entry.row.weight(), at)).collect();
            let count = order.len().min(self.rows.len() - goal);
            if count == 0 {
                break;
            }
            order.select_nth_unstable(count - 1);
            let mut goes = vec![false; self.rows.len()];
            order[..count].iter().for_each(|(_, at)| goes[*at] = true);
            let (mut kept, mut summed) = (Vec::with_capacity(self.most), Vec::with_capacity(count));
            for (entry, goes) in self.rows.drain(..).zip(goes) {
                if goes { summed.push(entry) } else { kept.push(entry) }
            }
            self.rows = kept;
            self.places.clear();
            self.places.extend(self.rows.iter().zip(0..).map(|(entry, place)| (entry.key, place)));
            for Entry { key, row, .. } in summed {
                self.summed += u64::from(!key.is_others());
                let Some(coarser) = key.coarser() else { continue };
                if let Some(&place) = self.places.get(&coarser) {
                    self.rows[place as usize].row.add(row);
                } else {
                    self.places.insert(coarser, self.rows.len() as u32);
                    self.rows.push(Entry { key: coarser, row: row.into_others(coarser), is_late: false });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct Name {
        pid: u32,
        name: u64,
    }

    impl Key for Name {
        fn coarser(&self) -> Option<Self> {
            match *self {
                Self { pid: OTHERS_PID, name: OTHERS_NAME } => None,
                Self { name: OTHERS_NAME, .. } => Some(Self { pid: OTHERS_PID, ..*self }),
                _ => Some(Self { name: OTHERS_NAME, ..*self }),
            }
        }

        fn is_others(&self) -> bool {
            self.name == OTHERS_NAME
        }
    }

    impl Row<Name> for u64 {
        fn weight(&self) -> u64 {
            *self
        }

        fn add(&mut self, other: Self) {
            *self += other;
        }
    }

    #[test]
    fn the_largest_stay_by_themselves_whenever_they_came() {
        let mut capped = Capped::<Name, u64>::new(100);
        for round in 0..100_000_u64 {
            *capped.row(Name { pid: 1, name: 10_000 + round }, || 0) += 1;
            *capped.row(Name { pid: 1, name: 1 }, || 0) += 5;
            if round > 50_000 {
                *capped.row(Name { pid: 1, name: 2 }, || 0) += 3;
            }
        }
        let row = |name| capped.iter().find(|(key, ..)| key.name == name).map(|(_, row, late)| (*row, late));
        assert_eq!(row(1), Some((500_000, false)));
        assert_eq!(row(2), Some((149_997, true)));
        assert!(capped.len() <= 101 && capped.summed() > 99_000);
        assert_eq!(capped.iter().map(|(_, row, _)| row).sum::<u64>(), 100_000 + 500_000 + 149_997);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_rows_that_are_not_late_are_exact(
            adds in prop::collection::vec((1..40_u32, 1..60_u64, 1..9_u64), 1..900),
        ) {
            let mut capped = Capped::<Name, u64>::new(20);
            let mut exact: FxHashMap<Name, u64> = FxHashMap::default();
            for (pid, name, weight) in &adds {
                let key = Name { pid: *pid, name: *name };
                *capped.row(key, || 0) += weight;
                *exact.entry(key).or_default() += weight;
                prop_assert!(capped.len() <= 21);
                prop_assert!(capped.find(key).is_some());
            }
            let all: u64 = capped.iter().map(|(_, row, _)| row).sum();
            prop_assert_eq!(all, exact.values().sum::<u64>());
            for (key, row, is_late) in capped.iter().filter(|(key, ..)| !key.is_others()) {
                prop_assert!(*row <= exact[key] && (is_late || *row == exact[key]));
            }
            let mut same = Capped::<Name, u64>::new(20);
            for (pid, name, weight) in adds {
                *same.row(Name { pid, name }, || 0) += weight;
            }
            prop_assert!(capped.iter().eq(same.iter()));
        }
    }
}
