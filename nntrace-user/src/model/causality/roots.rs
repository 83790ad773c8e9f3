//! Missing time: what no section in a root covers. A root is a section that is an iteration, or else an outermost one.

use std::collections::BTreeMap;

use super::Site;

/// All roots, by function.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    of_iterations: BTreeMap<Site, RootSum>,
    outermost: BTreeMap<Site, RootSum>,
}

/// What the roots of one function add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootSum {
    /// Roots.
    pub count: u64,
    /// Their time, ns.
    pub total: u64,
    /// Time of it that nothing covers, ns.
    pub missing: u64,
    /// The most that is missing in one, ns.
    pub most: u64,
}

impl RootSum {
    fn add(&mut self, duration: u64, missing: u64) {
        self.count += 1;
        self.total += duration;
        self.missing += missing;
        self.most = self.most.max(missing);
    }
}

impl Roots {
    pub(super) fn add(&mut self, site: Site, duration: u64, missing: u64) {
        self.of_iterations.entry(site).or_default().add(duration, missing);
    }

    pub(super) fn add_outermost(&mut self, site: Site, duration: u64, missing: u64) {
        self.outermost.entry(site).or_default().add(duration, missing);
    }

    /// The roots: iterations, or outermost sections where there are none.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<Site, RootSum> {
        if self.of_iterations.is_empty() { &self.outermost } else { &self.of_iterations }
    }
}
