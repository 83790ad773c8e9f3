//! Search for the next function of a path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nntrace_common::stamp::Stamp;

use super::collect::{Step, Steps};
use crate::model::causality::hand_overs::{HandOver, Source};

/// Works that are looked through from one section of the path to the next.
const MOST_WORKS: usize = 4_096;

/// Time of a thread in which it works on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    tid: u32,
    begin: Stamp,
    end: Stamp,
}

/// Dispatch of work, with where it went.
#[derive(Clone, Copy, Debug)]
struct Dispatch {
    at: Stamp,
    work: Work,
    source: Source,
}

/// Work that went all along a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Begin of the first section, ns.
    pub(super) begin: u64,
    /// Begins of the sections that were reached, and their ends, ns.
    pub(super) steps: Vec<(u64, u64)>,
}

/// Everything by which sections follow each other.
pub(super) struct Finder {
    steps: Steps,
    /// Dispatches by thread and time.
    dispatches: BTreeMap<u32, Vec<Dispatch>>,
    /// Evidence of the hand-overs that were followed.
    pub(super) followed: BTreeSet<Source>,
}

impl Finder {
    /// Creates a finder for the sections of a path, with the hand-overs of the run.
    pub(super) fn new(steps: Steps, hand_overs: impl Iterator<Item = HandOver>) -> Self {
        let mut dispatches: BTreeMap<u32, Vec<Dispatch>> = BTreeMap::new();
        for hand_over in hand_overs.filter(|hand_over| !hand_over.is_violation()) {
            let (Some(dispatch), Some(receive)) = (hand_over.dispatch, hand_over.receive) else { continue };
            let begin = hand_over.start.unwrap_or(receive.stamp());
            let work = Work { tid: receive.tid, begin, end: hand_over.end.unwrap_or(begin) };
            let source = hand_over.source;
            dispatches.entry(dispatch.tid).or_default().push(Dispatch { at: dispatch.stamp(), work, source });
        }
        for all in dispatches.values_mut() {
            all.sort_by_key(|dispatch| dispatch.at);
        }
        Self { steps, dispatches, followed: BTreeSet::new() }
    }

    /// Returns a walk for each section of the first function, by their begins, as far as it gets in a path of this many functions.
    pub(super) fn walks(&mut self, functions: usize) -> Vec<Walk> {
        let firsts = self.steps.iter().flat_map(|(tid, steps)| {
            let firsts = steps.iter().filter(|step| step.place == 0);
            firsts.map(|step| Work { tid: *tid, begin: step.begin, end: step.end })
        });
        let mut firsts: Vec<Work> = firsts.collect();
        firsts.sort_unstable_by_key(|first| (first.begin, first.tid, first.end));
        let walks = firsts.into_iter().map(|first| {
            let mut walk = Walk { begin: first.begin.time, steps: vec![(first.begin.time, first.end.time)] };
            let mut at = first;
            for place in 1..functions {
                let Some(next) = self.next(at, place) else { break };
                walk.steps.push((next.begin.time, next.end.time));
                at = next;
            }
            walk
        });
        walks.collect()
    }

    /// Returns the earliest section of the function at a place that follows from a work.
    fn next(&mut self, from: Work, place: usize) -> Option<Work> {
        let mut best: Option<Work> = None;
        let (mut seen, mut open) = (BTreeSet::from([from]), VecDeque::from([from]));
        while let Some(work) = open.pop_front() {
            // What is inside of the section that it comes from; or the work that was handed over itself, and what is in it.
            let found = self.in_work(work, place, work != from);
            if let Some(step) = found.filter(|step| best.is_none_or(|best| step.begin < best.begin)) {
                best = Some(Work { tid: work.tid, begin: step.begin, end: step.end });
            }
            let dispatches = self.dispatches.get(&work.tid).map_or(&[][..], Vec::as_slice);
            let first = dispatches.partition_point(|dispatch| dispatch.at < work.begin);
            for dispatch in dispatches[first..].iter().take_while(|dispatch| dispatch.at <= work.end) {
                if seen.len() < MOST_WORKS && seen.insert(dispatch.work) {
                    self.followed.insert(dispatch.source);
                    open.push_back(dispatch.work);
                }
            }
        }
        best
    }

    /// Returns the first section of the function at a place in a work; the work itself is one only where that is asked for.
    fn in_work(&self, work: Work, place: usize, or_itself: bool) -> Option<Step> {
        let steps = self.steps.get(&work.tid)?;
        let first = steps.partition_point(|step| step.begin < work.begin);
        let mut inside = steps[first..].iter().take_while(|step| step.begin <= work.end);
        let is_itself = |step: &Step| (step.begin, step.end) == (work.begin, work.end);
        inside
            .find(|step| step.place == place && step.end <= work.end && (or_itself || !is_itself(step)))
            .copied()
    }
}
