//! Threads that take turns on the CPUs, slice by slice, with nothing else in between.
//!
//! The simulation goes on from who has which CPU for how long and from the order of those who are ready, whatever time it is.
//! When that is as it was before, all that follows repeats itself until work is done or something else happens, so the repetitions
//! are taken at once: a long recording costs no more than a short one.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{Job, Simulation};

/// Slices in a row after which a repetition is looked for.
pub(super) const PATIENCE: u32 = 64;

/// Slices that have ended since anything else happened.
#[derive(Debug)]
pub(super) struct Rotation {
    /// Number of slices from which on a repetition is looked for.
    patience: u32,
    ended: u32,
    /// Number of slices at which a newer state is remembered.
    renews_at: u32,
    remembered: Option<State>,
}

/// State that the simulation goes on from.
#[derive(Debug)]
struct State {
    time: u64,
    /// By CPU: the point before which its work is, and the rest of its slice, ns.
    cpus: Vec<(Option<u32>, u64)>,
    /// Points before which the work of jobs is that are ready, in their order.
    ready: Vec<u32>,
    /// Work left before the points of the two, ns.
    left: Vec<u64>,
}

impl Rotation {
    pub(super) fn new(patience: u32) -> Self {
        Self { patience, ended: 0, renews_at: 0, remembered: None }
    }

    /// Something else happened.
    pub(super) fn ends(&mut self) {
        *self = Self::new(self.patience);
    }
}

impl State {
    fn repeats(&self, before: &Self) -> bool {
        self.cpus == before.cpus && self.ready == before.ready
    }

    fn points(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().filter_map(|(point, _)| *point).chain(self.ready.iter().copied())
    }
}

/// Work that was done between two states with the same jobs.
fn consumed<'a>(before: &'a [u64], after: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    before.iter().zip(after).map(|(before, after)| before.saturating_sub(*after))
}

impl Simulation<'_> {
    /// Slices ended at `now` (ns), and the CPUs were given away.
    pub(super) fn slices_ended(&mut self, now: u64) {
        self.rotation.ended += 1;
        if self.rotation.ended < self.rotation.patience {
            return;
        }
        let state = self.state(now);
        if let Some(before) = self.rotation.remembered.as_ref().filter(|before| state.repeats(before)) {
            let (period, repetitions) = self.repetitions(&state, before);
            let consumed: Vec<(u32, u64)> = state.points().zip(consumed(&before.left, &state.left)).collect();
            self.skip(period * repetitions, consumed.iter().map(|(point, ns)| (*point, ns * repetitions)));
            self.rotation.ends();
        } else if self.rotation.ended >= self.rotation.renews_at {
            self.rotation.renews_at = self.rotation.ended.saturating_mul(2);
            self.rotation.remembered = Some(state);
        }
    }

    fn state(&self, now: u64) -> State {
        let cpus = self.cpus.iter().map(|cpu| (cpu.runs, cpu.slice_end.saturating_sub(now))).collect();
        let ready = self.ready.iter().map(|job| job.point).collect();
        let state = State { time: now, cpus, ready, left: Vec::new() };
        let left = state.points().map(|point| self.left[point as usize]).collect();
        State { left, ..state }
    }

    /// Returns the time (ns) after which the state repeats itself, and how often it does before anything else happens.
    fn repetitions(&self, state: &State, before: &State) -> (u64, u64) {
        let period = state.time - before.time;
        let next = self.events.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let until_next = next.saturating_sub(state.time).saturating_sub(1) / period;
        let until_done = state
            .left
            .iter()
            .zip(consumed(&before.left, &state.left))
            .filter_map(|(left, ns)| left.saturating_sub(1).checked_div(ns));
        (period, until_done.fold(until_next, u64::min))
    }

    /// Lets all go on as before for so long (ns), in which this much of the work before points is done.
    fn skip(&mut self, time: u64, done: impl Iterator<Item = (u32, u64)>) {
        for (point, ns) in done {
            self.left[point as usize] -= ns;
        }
        for cpu in &mut self.cpus {
            cpu.slice_end = cpu.slice_end.saturating_add(time);
        }
        let later = |job: Job| Job { ready: job.ready.saturating_add(time), ..job };
        self.ready = std::mem::take(&mut self.ready).into_iter().map(later).collect::<BTreeSet<_>>();
        let slices = std::mem::take(&mut self.slices);
        self.slices =
            slices.into_iter().map(|Reverse((at, ran))| Reverse((at.saturating_add(time), ran))).collect();
    }
}
