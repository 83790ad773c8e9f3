//! Which waits of threads which edges explain.
//!
//! Where context switches are known, a wait is a sleep: an edge explains those sleeps before its later point which were still
//! going on when its earlier point came. Elsewhere, all time between two points is a wait if an edge to the later one begins in
//! between: how much of it was work is not known.

use std::collections::BTreeMap;

use nntrace_common::stamp::Stamp;

use super::{
    graph::{Candidate, Edge, Kind},
    queues::ends_wait,
    threads::Points,
};

/// Wait that edges may explain: the last point before its end, and the candidate.
#[derive(Clone, Copy, Debug)]
struct Explained {
    candidate: Candidate,
    /// Point at which the wait ends; `None` if the candidate explains none.
    wait: Option<u32>,
}

/// Makes edges of candidates, and takes the waits that they explain from the points.
pub(in crate::analyze) fn explain(points: &mut Points, candidates: Vec<Candidate>) -> Vec<Edge> {
    let (backwards, forwards): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|it| points.all[it.to as usize].is_before(&points.all[it.from as usize]));
    let mut all: Vec<Explained> = Vec::new();
    for candidate in forwards {
        let waits = if points.has_switches[points.all[candidate.to as usize].thread as usize] {
            sleeps(points, &candidate)
        } else {
            gap(points, &candidate).into_iter().collect()
        };
        if waits.is_empty() {
            all.push(Explained { candidate, wait: None });
        }
        all.extend(waits.into_iter().map(|wait| Explained { candidate, wait: Some(wait) }));
    }
    // Of several that explain one wait, the last that came ended it.
    let mut last: BTreeMap<u32, (Stamp, Candidate)> = BTreeMap::new();
    for Explained { candidate, wait } in &all {
        if let Some(wait) = wait {
            let came = (points.stamp(candidate.from), *candidate);
            last.entry(*wait).and_modify(|last| *last = came.max(*last)).or_insert(came);
        }
    }
    let mut edges: Vec<Edge> = Vec::new();
    for Explained { candidate, wait } in all {
        let ended = wait.filter(|wait| last.get(wait).is_some_and(|(_, last)| *last == candidate));
        edges.push(match ended {
            Some(wait) => {
                let point = &mut points.all[wait as usize];
                point.fixed = 0;
                if !points.has_switches[point.thread as usize] {
                    point.run = 0;
                }
                edge(points, candidate, wait, true)
            }
            None => edge(points, candidate, candidate.to, false),
        });
    }
    settle_latencies(&mut edges);
    // Those that lead backwards are dropped where they are counted.
    edges.extend(backwards.into_iter().map(|candidate| edge(points, candidate, candidate.to, false)));
    edges
}

fn edge(points: &Points, candidate: Candidate, to: u32, has_waited: bool) -> Edge {
    let Candidate { from, kind, trust, .. } = candidate;
    let latency = points.time(to).saturating_sub(points.time(from));
    Edge { from, to, latency, has_waited, kind, trust }
}

/// Who did not wait has no latency that was measured: it would have had the usual one, as far as it had that much time.
fn settle_latencies(edges: &mut [Edge]) {
    let mut measured: BTreeMap<Kind, Vec<u64>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.has_waited) {
        measured.entry(edge.kind).or_default().push(edge.latency);
    }
    let median = |all: &mut Vec<u64>| {
        let middle = all.len() / 2;
        *all.select_nth_unstable(middle).1
    };
    let medians: BTreeMap<Kind, u64> = measured.iter_mut().map(|(kind, all)| (*kind, median(all))).collect();
    for edge in edges.iter_mut().filter(|edge| !edge.has_waited) {
        edge.latency = edge.latency.min(medians.get(&edge.kind).copied().unwrap_or(0));
    }
}

/// Returns the ends of the sleeps between the last mark and a point that an edge to it explains: those that had not ended when
/// it began, or before the one that it begins at has shown another mark, as it had not given the work away yet.
fn sleeps(points: &Points, candidate: &Candidate) -> Vec<u32> {
    let came = points.time(candidate.from);
    let given = points.next_mark(candidate.from).map_or(u64::MAX, |next| points.time(next));
    let mut found = Vec::new();
    let mut at = Some(candidate.to);
    while let Some(point) = at {
        if point != candidate.to && points.all[point as usize].is_marked {
            break;
        }
        at = points.before(point);
        if let Some(begin) = at.filter(|_| points.slept[point as usize]) {
            let (slept, woke) = (points.time(begin), points.time(point));
            if woke >= came && (came >= slept || given >= woke) {
                found.push(point);
            }
        }
    }
    found
}

/// Returns the end of the time before a point, if an edge to it begins in that.
fn gap(points: &Points, candidate: &Candidate) -> Option<u32> {
    let (came, to) = (points.stamp(candidate.from), candidate.to);
    let Some(before) = points.before(to) else { return Some(to) };
    let has_waited = match candidate.kind {
        // Room is there mostly: who has it works.
        Kind::BackPressure => ends_wait(points.stamp(before), came, points.stamp(to)),
        _ => came > points.stamp(before),
    };
    has_waited.then_some(to)
}
