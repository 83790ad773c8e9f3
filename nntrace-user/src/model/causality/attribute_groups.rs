//! Sections by the value of an attribute.

use std::collections::BTreeMap;

use nntrace_common::record::Total;

use super::{Site, interned_texts::Texts};
use crate::model::{
    capped_table::{Capped, Key, Row},
    limits::Limits,
};

/// All values of one attribute.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// The values.
    pub(crate) values: Texts,
    rows: Capped<Grouped, GroupSum>,
}

/// A value, and a function under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grouped {
    value: u32,
    site: Site,
}

/// Stands for all values.
const ANY: u32 = u32::MAX;

impl Key for Grouped {
    fn coarser(&self) -> Option<Self> {
        match self.site.coarser() {
            Some(site) => Some(Self { site, ..*self }),
            None => (self.value != ANY).then_some(Self { value: ANY, ..*self }),
        }
    }

    fn is_others(&self) -> bool {
        self.site.is_others()
    }
}

impl Row<Grouped> for GroupSum {
    fn weight(&self) -> u64 {
        self.total.exclusive
    }

    fn add(&mut self, other: Self) {
        self.total.add(&other.total);
        self.longest = self.longest.max(other.longest);
    }
}

/// Sum of the sections of one function under one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupSum {
    /// Sections; `own` is their whole duration.
    pub total: Total,
    /// The longest, ns.
    pub longest: u64,
}

impl Groups {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { values: Texts::new(limits.causes / 4), rows: Capped::new(limits.causes) }
    }

    pub(super) fn sites(&self) -> impl Iterator<Item = Site> {
        self.rows.iter().map(|(grouped, ..)| grouped.site)
    }

    pub(super) fn summed(&self) -> u64 {
        self.rows.summed()
    }

    pub(super) fn charge(&mut self, value: u32, site: Site, exclusive: u64) {
        let total = &mut self.rows.row(Grouped { value, site }, GroupSum::default).total;
        total.exclusive = total.exclusive.saturating_add(exclusive);
    }

    pub(super) fn count(&mut self, value: u32, site: Site, duration: u64) {
        let sum = self.rows.row(Grouped { value, site }, GroupSum::default);
        sum.total.add(&Total { count: 1, own: duration, exclusive: 0 });
        sum.longest = sum.longest.max(duration);
    }

    /// Returns the sums by value and function.
    #[must_use]
    pub(crate) fn by_value(&self) -> BTreeMap<(&str, Site), GroupSum> {
        let mut rows: BTreeMap<(&str, Site), GroupSum> = BTreeMap::new();
        for (&Grouped { value, site }, sum, _) in self.rows.iter() {
            rows.entry((self.values.text(value), site)).or_default().add(*sum);
        }
        rows
    }
}
