//! Graphs by hand, and those of simulated programs.

use crate::analyze::{
    run_graph::graph::{Edge, Graph, IterationPart, Kind, Point, Trust},
    what_if::{
        cpus::{self, Cpus},
        predict::{Latencies, Schedule, Speeds, unlimited},
    },
};

/// Place of a point: thread, and number on it.
pub(super) type Place = (usize, usize);

/// Graph that is being made.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) threads: Vec<Vec<Point>>,
    pub(super) edges: Vec<(Place, Place, Kind)>,
    pub(super) iterations: Vec<(u64, Place, Place)>,
}

impl Draft {
    pub(super) fn thread(&mut self) -> usize {
        self.threads.push(Vec::new());
        self.threads.len() - 1
    }

    /// Adds a point after so much work of a component; its recorded time follows at the end.
    pub(super) fn point(&mut self, thread: usize, component: u32, run: u64) -> Place {
        self.threads[thread].push(Point { component, run, is_marked: true, ..Point::default() });
        (thread, self.threads[thread].len() - 1)
    }

    pub(super) fn edge(&mut self, kind: Kind, from: Place, to: Place) {
        self.edges.push((from, to, kind));
    }

    /// Returns the graph of a recording in which everything happened as early as possible.
    pub(super) fn graph(&self) -> Graph {
        let times = self.slow_times(&Speeds::recorded(0));
        let mut points = Vec::new();
        let mut first = Vec::new();
        for (thread, (all, times)) in self.threads.iter().zip(&times).enumerate() {
            first.push(points.len());
            let timed = all.iter().zip(times);
            points.extend(timed.map(|(point, &time)| Point { time, thread: thread as u32, ..*point }));
        }
        let number = |(thread, place): Place| (first[thread] + place) as u32;
        let edges = self.edges.iter().map(|&(from, to, kind)| Edge {
            from: number(from),
            to: number(to),
            latency: 0,
            has_waited: true,
            kind,
            trust: Trust::Explicit,
        });
        let mut graph = Graph::new(points, edges.collect());
        let parts = self.iterations.iter();
        graph.iterations = parts
            .map(|&(iteration, begin, end)| IterationPart {
                iteration,
                begin: number(begin),
                end: number(end),
            })
            .collect();
        graph.iterations.sort_unstable();
        graph
    }

    /// Returns the times of points by going round until none changes.
    pub(super) fn slow_times(&self, speeds: &Speeds) -> Vec<Vec<u64>> {
        let mut times: Vec<Vec<u64>> = self.threads.iter().map(|points| vec![0; points.len()]).collect();
        loop {
            let before = times.clone();
            for (thread, points) in self.threads.iter().enumerate() {
                for place in 0..points.len() {
                    let begin = place.checked_sub(1).map_or(0, |before| times[thread][before]);
                    let run = if place == 0 { 0 } else { speeds.length(&points[place]) };
                    let from = self.edges.iter().filter(|(_, to, _)| *to == (thread, place));
                    let waits = from.map(|((thread, place), ..)| times[*thread][*place]).max();
                    times[thread][place] = (begin + run).max(waits.unwrap_or(0));
                }
            }
            if times == before {
                return times;
            }
        }
    }
}

pub(super) fn replay(graph: &Graph, speeds: &Speeds) -> Schedule {
    unlimited(graph, speeds, &Latencies::Measured)
}

pub(super) fn makespan(graph: &Graph, speeds: &[f64]) -> u64 {
    replay(graph, &self::speeds(speeds)).makespan(graph)
}

pub(super) fn replay_on(graph: &Graph, speeds: &Speeds, count: u32) -> Schedule {
    let cpus = Cpus { count, allowed: Vec::new(), slice: cpus::SLICE };
    cpus::limited(graph, speeds, &Latencies::Measured, &cpus)
}

pub(super) fn makespan_on(graph: &Graph, speeds: &[f64], count: u32) -> u64 {
    replay_on(graph, &self::speeds(speeds), count).makespan(graph)
}

/// Speeds of components from 1 on.
pub(super) fn speeds(speeds: &[f64]) -> Speeds {
    let all = Speeds::recorded(speeds.len() + 1);
    (1..).zip(speeds).fold(all, |all, (component, speed)| all.with(component, *speed))
}

/// A thread that works for three components in turn, each 100 ns.
pub(super) fn chain(rounds: usize) -> Draft {
    let mut draft = Draft::default();
    let thread = draft.thread();
    draft.point(thread, 0, 0);
    for _ in 0..rounds {
        for component in 1..=3 {
            draft.point(thread, component, 100);
        }
    }
    draft
}

/// A thread (component 1, 50 ns) that creates one for each of these lengths (components from 2 on), waits for them all, and works
/// another 50 ns.
pub(super) fn fork_join(lengths: &[u64]) -> Draft {
    let mut draft = Draft::default();
    let main = draft.thread();
    draft.point(main, 0, 0);
    let fork = draft.point(main, 1, 50);
    let ends: Vec<Place> = (2..)
        .zip(lengths)
        .map(|(component, length)| {
            let thread = draft.thread();
            let first = draft.point(thread, 0, 0);
            draft.edge(Kind::Create, fork, first);
            draft.point(thread, component, *length)
        })
        .collect();
    let join = draft.point(main, 0, 0);
    for end in ends {
        draft.edge(Kind::Join, end, join);
    }
    draft.point(main, 1, 50);
    draft
}

/// Stages (components from 1 on) that pass items on by queues with so much room each.
pub(super) fn pipeline(lengths: &[u64], room: usize, items: usize) -> Draft {
    let mut draft = Draft::default();
    let threads: Vec<usize> = lengths.iter().map(|_| draft.thread()).collect();
    let mut received: Vec<Vec<Place>> = vec![Vec::new(); lengths.len()];
    for &thread in &threads {
        draft.point(thread, 0, 0);
    }
    for item in 0..items {
        let mut sent: Option<Place> = None;
        for (stage, (&thread, &length)) in threads.iter().zip(lengths).enumerate() {
            let begin = draft.point(thread, 0, 0);
            if let Some(sent) = sent {
                draft.edge(Kind::HandOver, sent, begin);
                received[stage].push(begin);
            }
            let end = draft.point(thread, stage as u32 + 1, length);
            draft.iterations.push((item as u64, begin, end));
            let send = draft.point(thread, 0, 0);
            // All receipts of the next stage that matter are of earlier items.
            if stage + 1 < lengths.len()
                && let Some(earlier) = item.checked_sub(room)
            {
                let receipt = received[stage + 1][earlier];
                draft.edge(Kind::BackPressure, receipt, send);
            }
            sent = Some(send);
        }
    }
    draft
}

/// Threads that each work outside of a lock (components 1, 3, 5 ..) and in it (2, 4, 6 ..), in turn, so often.
pub(super) fn convoy(lengths: &[(u64, u64)], rounds: usize) -> Draft {
    let mut draft = Draft::default();
    let threads: Vec<usize> = lengths.iter().map(|_| draft.thread()).collect();
    for &thread in &threads {
        draft.point(thread, 0, 0);
    }
    let mut released: Option<Place> = None;
    for _ in 0..rounds {
        for (number, (&thread, (outside, inside))) in (0..).zip(threads.iter().zip(lengths)) {
            draft.point(thread, 2 * number + 1, *outside);
            let acquired = draft.point(thread, 0, 0);
            if let Some(released) = released {
                draft.edge(Kind::Lock, released, acquired);
            }
            released = Some(draft.point(thread, 2 * number + 2, *inside));
        }
    }
    draft
}

/// A client (component 1) that calls a server (component 2) so often, and waits for each reply.
pub(super) fn calls(client: u64, server: u64, count: usize) -> Draft {
    let mut draft = Draft::default();
    let (caller, called) = (draft.thread(), draft.thread());
    draft.point(caller, 0, 0);
    for _ in 0..count {
        let request = draft.point(caller, 1, client);
        let begin = draft.point(called, 0, 0);
        draft.edge(Kind::HandOver, request, begin);
        let end = draft.point(called, 2, server);
        let reply = draft.point(caller, 0, 0);
        draft.edge(Kind::Reply, end, reply);
    }
    draft
}
