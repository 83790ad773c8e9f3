//! How long single stays in idle states were: percentiles, and whether the state was too deep or not deep enough.
//!
//! Source: the power contract, section 1. Only stays of which both ends lie within the window are looked at: of the
//! others the length is not known.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nntrace_common::power::{Activity, Interval};

use super::{
    histogram::{self, FEW_DIGITS},
    small_map::SmallMap,
    topology::{CpuDescription, Topology},
};

/// Stays in idle states, by CPU and state.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleStays {
    begin: u64,
    /// By CPU and state.
    states: Vec<SmallMap<u32, Stays>>,
    limits: BTreeMap<u32, Vec<Limits>>,
}

/// The stays of one CPU in one state.
#[derive(Clone, Debug)]
pub(crate) struct Stays {
    /// Their lengths, ns.
    pub lengths: Histogram<u32>,
    /// How many were shorter than what pays; `None` where that is not known.
    pub early: Option<u64>,
    /// How many were long enough for the next deeper state; `None` where that is not known.
    pub late: Option<u64>,
    limits: Limits,
}

/// Lengths that stays in one state are compared with, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    /// Its own target residency.
    pays: Option<u64>,
    /// Target residency of the next deeper state that is enabled; the longest possible time where there is none.
    next_pays: Option<u64>,
}

impl IdleStays {
    /// Creates the state for this machine, in a window that begins at `begin` (ns).
    #[must_use]
    pub(crate) fn new(topology: &Topology, begin: u64) -> Self {
        let limits = topology.cpus.iter().map(|(&cpu, description)| (cpu, limits(description)));
        Self { begin, states: Vec::new(), limits: limits.collect() }
    }

    /// A stretch of a CPU that one of its own `cpu_idle` events ended.
    pub(crate) fn ended(&mut self, cpu: u32, stretch: &Interval) {
        let Activity::Idle(state) = stretch.activity else { return };
        let ns = stretch.end - stretch.begin;
        if ns == 0 || stretch.begin <= self.begin {
            return;
        }
        let place = cpu as usize;
        if self.states.len() <= place {
            self.states.resize_with(place + 1, SmallMap::default);
        }
        let limits = &self.limits;
        let stays = self.states[place].entry_or(state, || {
            let limits = limits.get(&cpu).and_then(|states| states.get(state as usize));
            Stays::new(limits.copied().unwrap_or_default())
        });
        stays.add(ns);
    }

    /// The stays of a CPU in a state; `None` when there was no whole one.
    #[must_use]
    pub(crate) fn of(&self, cpu: u32, state: u32) -> Option<&Stays> {
        self.states.get(cpu as usize)?.get(state)
    }
}

impl Stays {
    fn new(limits: Limits) -> Self {
        Self {
            lengths: histogram::empty(FEW_DIGITS),
            early: limits.pays.map(|_| 0),
            late: limits.next_pays.map(|_| 0),
            limits,
        }
    }

    /// Adds a stay of `ns`.
    fn add(&mut self, ns: u64) {
        histogram::record(&mut self.lengths, ns);
        let count = |counter: &mut Option<u64>, is: bool| *counter = counter.map(|n| n + u64::from(is));
        count(&mut self.early, self.limits.pays.is_some_and(|pays| ns < pays));
        count(&mut self.late, self.limits.next_pays.is_some_and(|pays| ns >= pays));
    }
}

fn limits(cpu: &CpuDescription) -> Vec<Limits> {
    let states = &cpu.idle_states;
    let limits = states.iter().enumerate().map(|(number, state)| {
        let deeper = states[number + 1..].iter().find(|state| !state.disabled);
        Limits {
            pays: state.target_residency_ns,
            next_pays: match deeper {
                Some(next) => next.target_residency_ns,
                None => Some(u64::MAX),
            },
        }
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::topology::IdleStateDescription;

    fn topology() -> Topology {
        let state = |us: Option<u64>, disabled| IdleStateDescription {
            target_residency_ns: us.map(|us| us * 1_000),
            disabled,
            ..IdleStateDescription::default()
        };
        let idle_states = vec![state(Some(1), false), state(Some(50), true), state(Some(100), false)];
        let undescribed = vec![state(Some(1), false), state(None, false)];
        Topology {
            cpus: [(0, CpuDescription { idle_states }), (1, CpuDescription { idle_states: undescribed })]
                .into(),
            ..Topology::default()
        }
    }

    fn stay(stays: &mut IdleStays, cpu: u32, state: u32, begin: u64, us: u64) {
        stays.ended(cpu, &Interval { activity: Activity::Idle(state), begin, end: begin + us * 1_000 });
    }

    #[test]
    fn early_and_late_by_the_states_that_are_enabled() {
        let mut stays = IdleStays::new(&topology(), 10);
        for us in [1, 60, 99, 100, 200] {
            stay(&mut stays, 0, 0, 20, us);
        }
        stay(&mut stays, 0, 2, 20, 99);
        let shallow = stays.of(0, 0).unwrap();
        assert_eq!((shallow.early, shallow.late, shallow.lengths.len()), (Some(0), Some(2), 5));
        let deep = stays.of(0, 2).unwrap();
        assert_eq!((deep.early, deep.late), (Some(1), Some(0)));
    }

    #[test]
    fn what_no_table_tells_is_not_known() {
        let mut stays = IdleStays::new(&topology(), 10);
        stay(&mut stays, 1, 0, 20, 500);
        stay(&mut stays, 1, 1, 20, 500);
        stay(&mut stays, 7, 1, 20, 500);
        assert_eq!((stays.of(1, 0).unwrap().early, stays.of(1, 0).unwrap().late), (Some(0), None));
        assert_eq!((stays.of(1, 1).unwrap().early, stays.of(1, 1).unwrap().late), (None, Some(0)));
        assert_eq!((stays.of(7, 1).unwrap().early, stays.of(7, 1).unwrap().late), (None, None));
    }

    #[test]
    fn a_stay_that_the_window_cuts_has_no_length() {
        let mut stays = IdleStays::new(&topology(), 10);
        stay(&mut stays, 0, 0, 10, 500);
        stays.ended(0, &Interval { activity: Activity::Running, begin: 20, end: 30 });
        stay(&mut stays, 0, 0, 40, 0);
        assert!(stays.of(0, 0).is_none());
    }
}
