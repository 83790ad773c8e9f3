//! Use of CPUs while a thread waited for one: who ran there, or which idle state the CPU was leaving.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analyze::run_graph::collect::RivalTurn;
use crate::model::{
    Scheduling,
    scheduling::Activity,
    timeline::{CpuState, Timelines},
};

/// CPUs that a wait for one is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// The one that the thread got.
    pub(super) next: Option<u32>,
    /// The one that it was taken off; `None` if it was woken.
    pub(super) last: Option<u32>,
}

/// Activity of a CPU meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meanwhile {
    /// It ran this thread.
    Ran(u32),
    /// It ran the rival with this number: a thread that was not traced.
    Rival(u32),
    /// It was in an idle state: its number, where it is known.
    Idle(u32, Option<u32>),
    /// Not known.
    Unknown,
}

/// A time, and what was the case: begin and end, ns.
pub(super) type Stretch<T> = (u64, u64, T);

/// Threads and idle states of all CPUs over time.
#[derive(Default)]
pub(super) struct CpuUse {
    threads: FxHashMap<u32, Vec<Stretch<u32>>>,
    rivals: FxHashMap<u32, Vec<Stretch<u32>>>,
    idle: BTreeMap<u32, Vec<Stretch<Option<u32>>>>,
}

impl CpuUse {
    /// Takes what is known of threads and of CPUs.
    pub(super) fn new(
        scheduling: Option<&Scheduling>,
        rivals: &[RivalTurn],
        timelines: Option<&Timelines>,
    ) -> Self {
        let mut all = Self::default();
        if let Some(scheduling) = scheduling {
            let tids: FxHashSet<u32> = scheduling.ids().map(|(tid, _)| tid).collect();
            for tid in tids {
                let mut runs: Option<(u64, u32)> = None;
                for (time, activity) in scheduling.activities(tid) {
                    if let Some((begin, cpu)) = runs.take() {
                        all.threads.entry(cpu).or_default().push((begin, time, tid));
                    }
                    if let Activity::OnCpu(cpu) = activity {
                        runs = Some((time, cpu));
                    }
                }
                if let Some((begin, cpu)) = runs {
                    all.threads.entry(cpu).or_default().push((begin, u64::MAX, tid));
                }
            }
        }
        for (cpu, timeline) in timelines.iter().flat_map(|timelines| &timelines.cpus) {
            let idle = all.idle.entry(*cpu).or_default();
            timeline.visit(|begin, end, parts| match parts {
                [(CpuState::Idle(state), _)] => idle.push((begin, end, Some(*state))),
                [(CpuState::IdleUnknown, _)] => idle.push((begin, end, None)),
                // In which order things were is not known.
                _ => {}
            });
        }
        for RivalTurn { cpu, times: (begin, end), rival } in rivals {
            all.rivals.entry(*cpu).or_default().push((*begin, *end, *rival));
        }
        for stretches in all.threads.values_mut().chain(all.rivals.values_mut()) {
            stretches.sort_unstable();
        }
        all
    }

    /// Shows what the time (ns) went by with in which a thread waited: it tiles it.
    pub(super) fn visit(
        &self,
        tid: u32,
        turn: Turn,
        (begin, end): (u64, u64),
        take: &mut dyn FnMut(Meanwhile, u64),
    ) {
        let mut left = vec![(begin, end)];
        let mut sums: BTreeMap<Meanwhile, u64> = BTreeMap::new();
        let mut cpus: Vec<u32> = turn.next.into_iter().chain(turn.last).collect();
        cpus.dedup();
        for cpu in cpus {
            let ran = self.threads.get(&cpu).map_or(&[][..], |all| all);
            claim(&mut left, ran, |other, ns| {
                if other != tid {
                    *sums.entry(Meanwhile::Ran(other)).or_default() += ns;
                }
                other != tid
            });
            let rivals = self.rivals.get(&cpu).map_or(&[][..], |all| all);
            claim(&mut left, rivals, |rival, ns| {
                *sums.entry(Meanwhile::Rival(rival)).or_default() += ns;
                true
            });
        }
        // Who was taken off a CPU does not wait for another one to wake up.
        if let Some(cpu) = turn.next.filter(|_| turn.last.is_none()) {
            let idle = self.idle.get(&cpu).map_or(&[][..], |all| all);
            claim(&mut left, idle, |state, ns| {
                *sums.entry(Meanwhile::Idle(cpu, state)).or_default() += ns;
                true
            });
        }
        for (from, to) in left {
            *sums.entry(Meanwhile::Unknown).or_default() += to - from;
        }
        sums.into_iter().filter(|(_, ns)| *ns > 0).for_each(|(meanwhile, ns)| take(meanwhile, ns));
    }
}

/// Takes stretches out of the times that are left; `is_taken` is shown each overlap, ns.
pub(super) fn claim<T: Copy>(
    left: &mut Vec<(u64, u64)>,
    stretches: &[Stretch<T>],
    mut is_taken: impl FnMut(T, u64) -> bool,
) {
    let mut rest = Vec::new();
    for &(begin, end) in left.iter() {
        let mut at = begin;
        let first = stretches.partition_point(|(_, until, _)| *until <= begin);
        for &(from, to, what) in stretches[first..].iter().take_while(|(from, ..)| *from < end) {
            let (from, to) = (from.max(at), to.min(end));
            if from < to && is_taken(what, to - from) {
                if at < from {
                    rest.push((at, from));
                }
                at = to;
            }
        }
        if at < end {
            rest.push((at, end));
        }
    }
    *left = rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_split_by_who_ran_and_by_idle_states() {
        let cpu_use = CpuUse {
            threads: [(0, vec![(0, 20, 7), (20, 25, 8), (30, 40, 9)]), (1, vec![(24, 35, 5)])]
                .into_iter()
                .collect(),
            // A turn that began before anything was traced, and one that a thread of ours is in by other events.
            rivals: [(0, vec![(0, 28, 1), (35, 42, 0)])].into_iter().collect(),
            idle: [(0, vec![(40, 47, Some(2))])].into(),
        };
        let seen = |turn, begin, end| {
            let mut seen = Vec::new();
            cpu_use.visit(7, turn, (begin, end), &mut |what, ns| seen.push((what, ns)));
            seen
        };
        let woken = Turn { next: Some(0), last: None };
        assert_eq!(
            seen(woken, 22, 50),
            [
                (Meanwhile::Ran(8), 3),
                (Meanwhile::Ran(9), 10),
                (Meanwhile::Rival(0), 2),
                (Meanwhile::Rival(1), 3),
                (Meanwhile::Idle(0, Some(2)), 5),
                (Meanwhile::Unknown, 5)
            ]
        );
        let moved = Turn { next: Some(0), last: Some(1) };
        assert_eq!(
            seen(moved, 22, 50),
            [
                (Meanwhile::Ran(5), 2),
                (Meanwhile::Ran(8), 3),
                (Meanwhile::Ran(9), 10),
                (Meanwhile::Rival(0), 2),
                (Meanwhile::Rival(1), 3),
                (Meanwhile::Unknown, 8)
            ]
        );
    }
}
