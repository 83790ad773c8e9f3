//! Points in the time of threads, the work between them, and what waits for what.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use nntrace_common::stamp::Stamp;

/// Component of work that no section covers.
pub(in crate::analyze) const UNMARKED: u32 = 0;

/// Point in the time of a thread, with the work since the point before it on that thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::analyze) struct Point {
    /// Recorded time, ns.
    pub(in crate::analyze) time: u64,
    /// [`Stamp::sequence`] of the mark that shows it; 0 without one.
    pub(in crate::analyze) sequence: u32,
    /// Number of the thread.
    pub(in crate::analyze) thread: u32,
    /// Component of the work.
    pub(in crate::analyze) component: u32,
    /// Length of the work, ns.
    pub(in crate::analyze) run: u64,
    /// Wait that nothing in the graph explains, such as one for a timer or a device, ns.
    pub(in crate::analyze) fixed: u64,
    /// Wait for a CPU, ns.
    pub(in crate::analyze) queued: u64,
    /// Part of that in which other programs had one, or the CPU woke up: it stays whatever these threads do, ns.
    pub(in crate::analyze) outside: u64,
    /// Whether that part interrupted work, and so is as much shorter as this.
    pub(in crate::analyze) is_interruption: bool,
    /// CPU of the work, where it is known.
    pub(in crate::analyze) cpu: Option<u32>,
    /// Whether it is input from outside, which does not come before its recorded time.
    pub(in crate::analyze) is_arrival: bool,
    /// Whether a mark shows it: what is measured begins with the first and ends with the last such point.
    pub(in crate::analyze) is_marked: bool,
}

impl Point {
    /// Returns its place in the order of events.
    pub(in crate::analyze) const fn stamp(&self) -> Stamp {
        Stamp::new(self.time, self.sequence)
    }

    /// Whether it is known to be before another point.
    pub(in crate::analyze) fn is_before(&self, other: &Self) -> bool {
        let are_numbered = self.sequence > 0 && other.sequence > 0;
        if are_numbered { self.stamp() < other.stamp() } else { self.time < other.time }
    }
}

/// Kind of an edge between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::analyze) enum Kind {
    /// Work that was handed over, from its dispatch to its receipt.
    HandOver,
    /// Result of a call, from the end of the work to who waits for it.
    Reply,
    /// Room in a bounded queue, from a receipt to the sender that waits for it.
    BackPressure,
    /// Lock, from its release to the next one who takes it.
    Lock,
    /// Thread, from who creates it to its first point.
    Create,
    /// Thread, from its end to who waits for it.
    Join,
    /// Wake-up by a thread that nothing else explains.
    WakeUp,
}

impl Kind {
    /// Word in results.
    pub(in crate::analyze) const fn name(self) -> &'static str {
        match self {
            Self::HandOver => "hand-over",
            Self::Reply => "reply",
            Self::BackPressure => "back-pressure",
            Self::Lock => "lock",
            Self::Create => "creation",
            Self::Join => "join",
            Self::WakeUp => "wake-up",
        }
    }
}

/// Trust in an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::analyze) enum Trust {
    /// A mark or an event of the kernel shows it.
    Explicit,
    /// It is concluded from what happened.
    Inferred,
}

/// Edge between threads: the one point is not before the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analyze) struct Edge {
    /// Number of the earlier point.
    pub(in crate::analyze) from: u32,
    /// Number of the later point.
    pub(in crate::analyze) to: u32,
    /// Time from the one to the other at least, ns.
    pub(in crate::analyze) latency: u64,
    /// Whether the later point waited for it in the recording: only then is the latency a measured one.
    pub(in crate::analyze) has_waited: bool,
    /// Kind.
    pub(in crate::analyze) kind: Kind,
    /// Trust.
    pub(in crate::analyze) trust: Trust,
}

/// Edge of which it is not known yet what it explains: the one point is not before the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::analyze) struct Candidate {
    pub(in crate::analyze) from: u32,
    pub(in crate::analyze) to: u32,
    pub(in crate::analyze) kind: Kind,
    pub(in crate::analyze) trust: Trust,
}

/// Section of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::analyze) struct IterationPart {
    /// Number of the iteration.
    pub(in crate::analyze) iteration: u64,
    /// Number of the point at which the section begins.
    pub(in crate::analyze) begin: u32,
    /// Number of the point at which it ends.
    pub(in crate::analyze) end: u32,
}

/// Points and edges of a run, in an order in which they can be computed.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Graph {
    /// Points, one thread after the other, each in its order.
    pub(in crate::analyze) points: Vec<Point>,
    /// Edges between threads, by their later point.
    pub(in crate::analyze) edges: Vec<Edge>,
    /// First edge of each point among these; one more at the end.
    first_edge: Vec<u32>,
    /// Numbers of points, each after all that it depends on.
    pub(in crate::analyze) order: Vec<u32>,
    /// Hand-overs, dropped ones too: receipts should not be before their dispatches.
    pub(in crate::analyze) hand_overs: Vec<(u32, u32)>,
    /// Edges that lead backwards in recorded time, and were dropped.
    pub(in crate::analyze) violations: u64,
    /// Sections of iterations, by iteration.
    pub(in crate::analyze) iterations: Vec<IterationPart>,
}

impl Graph {
    /// Puts points in order. Points of a thread stand together, in the order of the thread. Edges that lead backwards in time are
    /// dropped and counted.
    pub(in crate::analyze) fn new(points: Vec<Point>, mut edges: Vec<Edge>) -> Self {
        let hand_overs =
            edges.iter().filter(|edge| edge.kind == Kind::HandOver).map(|edge| (edge.from, edge.to));
        let hand_overs = hand_overs.collect();
        let all = edges.len();
        edges.retain(|edge| !points[edge.to as usize].is_before(&points[edge.from as usize]));
        edges.sort_by_key(|edge| (edge.to, edge.from, edge.kind, edge.latency));
        let mut graph = Self { points, edges, hand_overs, ..Self::default() };
        while !graph.put_in_order() {
            graph.drop_circle();
        }
        graph.violations = (all - graph.edges.len()) as u64;
        graph
    }

    /// Returns the point before this one on its thread.
    pub(in crate::analyze) fn before(&self, point: u32) -> Option<u32> {
        let before = point.checked_sub(1)?;
        (self.points[before as usize].thread == self.points[point as usize].thread).then_some(before)
    }

    /// Returns the edges to a point.
    pub(in crate::analyze) fn edges_to(&self, point: u32) -> &[Edge] {
        let place = |point: usize| self.first_edge[point] as usize;
        &self.edges[place(point as usize)..place(point as usize + 1)]
    }

    /// Whether the time of a point is that of the recording: nothing in the graph leads to it.
    pub(in crate::analyze) fn is_source(&self, point: u32) -> bool {
        self.before(point).is_none() && self.edges_to(point).is_empty()
    }

    /// Returns the recorded time from the first marked point to the last one, ns.
    pub(in crate::analyze) fn recorded_makespan(&self) -> u64 {
        let marked = || self.points.iter().filter(|point| point.is_marked).map(|point| point.time);
        marked().max().zip(marked().min()).map_or(0, |(last, first)| last - first)
    }

    /// Orders the points by recorded time, each after all that it depends on; `false` if some depend on each other.
    fn put_in_order(&mut self) -> bool {
        let count = self.points.len();
        let mut edges = self.edges.iter().peekable();
        let mut place = 0;
        self.first_edge.clear();
        for point in 0..=count as u32 {
            while edges.next_if(|edge| edge.to < point).is_some() {
                place += 1;
            }
            self.first_edge.push(place);
        }
        let mut waits_for: Vec<u32> = (0..count as u32)
            .map(|point| self.edges_to(point).len() as u32 + u32::from(self.before(point).is_some()))
            .collect();
        let mut later: Vec<(u32, u32)> = self.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        later.sort_unstable();
        let key = |point: u32| Reverse((self.points[point as usize].time, point));
        let free = (0..count as u32).filter(|point| waits_for[*point as usize] == 0).map(key);
        let mut free: BinaryHeap<_> = free.collect();
        self.order = Vec::with_capacity(count);
        while let Some(Reverse((_, point))) = free.pop() {
            self.order.push(point);
            let next = point + 1;
            let is_same = |next: &u32| self.before(*next) == Some(point);
            let next = Some(next).filter(|next| (*next as usize) < count).filter(is_same);
            let first = later.partition_point(|(from, _)| *from < point);
            let of_point = later[first..].iter().take_while(|(from, _)| *from == point).map(|(_, to)| *to);
            for to in of_point.chain(next) {
                waits_for[to as usize] -= 1;
                if waits_for[to as usize] == 0 {
                    free.push(key(to));
                }
            }
        }
        self.order.len() == count
    }

    /// Drops the edges to the earliest point that depends on itself.
    #[cold]
    fn drop_circle(&mut self) {
        let mut is_ordered = vec![false; self.points.len()];
        self.order.iter().for_each(|point| is_ordered[*point as usize] = true);
        let blocked = self.edges.iter().filter(|edge| !is_ordered[edge.from as usize]).map(|edge| edge.to);
        let first = blocked.min_by_key(|to| (self.points[*to as usize].time, *to));
        self.edges.retain(|edge| Some(edge.to) != first || is_ordered[edge.from as usize]);
    }

    /// Returns the latencies of edges that were waited for, by kind, ascending, ns.
    pub(in crate::analyze) fn latencies(&self) -> BTreeMap<Kind, Vec<u64>> {
        let mut all: BTreeMap<Kind, Vec<u64>> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| edge.has_waited) {
            all.entry(edge.kind).or_default().push(edge.latency);
        }
        for latencies in all.values_mut() {
            latencies.sort_unstable();
        }
        all
    }
}
