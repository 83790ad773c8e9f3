//! Missing time: what no section in a root covers. A root is a section that is an iteration, or else an outermost one.

use std::collections::BTreeMap;

use super::{Site, threads::Inner};
use crate::model::scheduling::{Scheduling, StateTimes};

/// All roots, by function.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    of_iterations: BTreeMap<Site, RootSum>,
    outermost: BTreeMap<Site, RootSum>,
}

/// What is missing in one root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// All of it, ns.
    pub time: u64,
    /// What the root's thread did meanwhile; `None` where nobody looked.
    pub states: Option<StateTimes>,
}

impl Missing {
    /// Of these stretches of a thread.
    pub(super) fn of(tid: u32, gaps: &[Inner], scheduling: Option<&Scheduling>) -> Self {
        let states = scheduling.map(|scheduling| {
            let mut states = StateTimes::default();
            for gap in gaps {
                states += scheduling.times(tid, gap.begin, gap.end);
            }
            states
        });
        Self { time: gaps.iter().map(|gap| gap.end - gap.begin).sum(), states }
    }
}

/// What the roots of one function add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootSum {
    /// Roots.
    pub count: u64,
    /// Their time, ns.
    pub total: u64,
    /// Time of it that nothing covers.
    pub missing: Missing,
    /// The most that is missing in one, ns.
    pub most: u64,
}

impl RootSum {
    fn add(&mut self, duration: u64, missing: &Missing) {
        self.count += 1;
        self.total += duration;
        self.missing.time += missing.time;
        if let Some(states) = missing.states {
            *self.missing.states.get_or_insert_default() += states;
        }
        self.most = self.most.max(missing.time);
    }
}

impl Roots {
    pub(super) fn add(&mut self, site: Site, duration: u64, missing: &Missing) {
        self.of_iterations.entry(site).or_default().add(duration, missing);
    }

    pub(super) fn add_outermost(&mut self, site: Site, duration: u64, missing: &Missing) {
        self.outermost.entry(site).or_default().add(duration, missing);
    }

    /// The roots: iterations, or outermost sections where there are none.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<Site, RootSum> {
        if self.of_iterations.is_empty() { &self.outermost } else { &self.of_iterations }
    }
}
