//! Sections by the value of an attribute.

use std::collections::BTreeMap;

use nntrace_common::record::Total;
use rustc_hash::FxHashMap;

use super::{Site, texts::Texts};

/// All values of one attribute.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The values.
    pub values: Texts,
    rows: FxHashMap<(u32, Site), GroupSum>,
}

/// What the sections of one function add up to under one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSum {
    /// Sections; `own` is their whole duration.
    pub total: Total,
    /// The longest, ns.
    pub longest: u64,
}

impl Groups {
    pub(super) fn charge(&mut self, value: u32, site: Site, exclusive: u64) {
        self.rows.entry((value, site)).or_default().total.exclusive += exclusive;
    }

    pub(super) fn count(&mut self, value: u32, site: Site, duration: u64) {
        let sum = self.rows.entry((value, site)).or_default();
        sum.total.add(&Total { count: 1, own: duration, exclusive: 0 });
        sum.longest = sum.longest.max(duration);
    }

    /// By value and function.
    #[must_use]
    pub fn by_value(&self) -> BTreeMap<(&str, Site), GroupSum> {
        self.rows.iter().map(|(&(value, site), sum)| ((self.values.text(value), site), *sum)).collect()
    }
}
