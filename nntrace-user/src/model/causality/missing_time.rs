//! Missing time: what no section in a root covers. A root is a section that is an iteration, or else an outermost one.

use super::{Site, thread_contexts::Stretch};
use crate::model::{
    capped_table::{Capped, Row},
    limits::Limits,
    scheduling::{Scheduling, StateTimes},
};

/// All roots, by function.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    of_iterations: Capped<Site, RootSum>,
    outermost: Capped<Site, RootSum>,
}

/// Missing time of one root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Whole missing time, ns.
    pub time: u64,
    /// States of the root's thread in it; `None` without scheduling events.
    pub states: Option<StateTimes>,
}

impl Missing {
    /// Missing time in these gaps of a thread.
    pub(super) fn of(tid: u32, gaps: &[Stretch], scheduling: Option<&Scheduling>) -> Self {
        let states = scheduling.map(|scheduling| {
            let mut states = StateTimes::default();
            for gap in gaps {
                states += scheduling.times(tid, gap.begin, gap.end);
            }
            states
        });
        Self { time: gaps.iter().map(|gap| gap.end - gap.begin).fold(0, u64::saturating_add), states }
    }
}

/// Sum of the roots of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RootSum {
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
    const fn of(duration: u64, missing: &Missing) -> Self {
        Self { count: 1, total: duration, missing: *missing, most: missing.time }
    }
}

impl Row<Site> for RootSum {
    fn weight(&self) -> u64 {
        self.total
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.missing.time = self.missing.time.saturating_add(other.missing.time);
        if let Some(states) = other.missing.states {
            *self.missing.states.get_or_insert_default() += states;
        }
        self.most = self.most.max(other.most);
    }
}

impl Roots {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { of_iterations: Capped::new(limits.causes), outermost: Capped::new(limits.causes) }
    }

    pub(super) fn summed(&self) -> u64 {
        self.of_iterations.summed() + self.outermost.summed()
    }

    pub(super) fn add(&mut self, site: Site, duration: u64, missing: &Missing) {
        self.of_iterations.row(site, RootSum::default).add(RootSum::of(duration, missing));
    }

    pub(super) fn add_outermost(&mut self, site: Site, duration: u64, missing: &Missing) {
        self.outermost.row(site, RootSum::default).add(RootSum::of(duration, missing));
    }

    /// The roots, in no order: iterations, or outermost sections where there are none.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Site, &RootSum)> {
        let all = if self.of_iterations.is_empty() { &self.outermost } else { &self.of_iterations };
        all.iter().map(|(&site, sum, _)| (site, sum))
    }
}
