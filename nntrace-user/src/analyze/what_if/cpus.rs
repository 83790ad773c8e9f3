//! The times of points with other speeds on a number of CPUs.
//!
//! Work is a job that needs a CPU; waits are not. Who is ready first runs first, of one instant who was first in the recording. A
//! thread goes on with its next work while it does not wait, until its slice of time is over and others are ready. What other
//! programs took of the CPUs in the recording, they take again.

mod rotation;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use rotation::{PATIENCE, Rotation};

use super::predict::{Latencies, Schedule, Speeds};
use crate::analyze::run_graph::graph::Graph;

/// Time after which a thread makes room for others that are ready, if these did not wait longer in the recording, ns: the order of
/// `base_slice_ns` of the kernel (kernel/sched/fair.c), which is 0.7 ms times a factor that grows with the CPUs.
pub(super) const SLICE: u64 = 3_000_000;

/// CPUs of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// How many there are.
    pub(super) count: u32,
    /// CPUs that each thread may use, by its number; all where there is no entry, or none of these exists.
    pub(super) allowed: Vec<Vec<u32>>,
    /// Time after which a thread makes room for others that are ready, ns.
    pub(super) slice: u64,
}

/// First events first, with their times (ns).
type Events = BinaryHeap<Reverse<(u64, Event)>>;

/// Event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The piece of work before this point that runs on a CPU is over.
    Ran(u32, u32),
    /// This point is reached.
    Reached(u32),
}

/// Job that waits for a CPU, in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    ready: u64,
    recorded: u64,
    point: u32,
}

/// CPU and the thread that had it last.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Point before which the work is that it runs; `None` while it is idle.
    runs: Option<u32>,
    thread: Option<u32>,
    /// Time until which the thread has it, ns.
    slice_end: u64,
}

struct Simulation<'a> {
    graph: &'a Graph,
    speeds: &'a Speeds,
    latencies: &'a Latencies,
    allowed: &'a [Vec<u32>],
    slice: u64,
    /// Numbers of edges by their earlier point.
    later: Vec<(u32, u32)>,
    events: Events,
    /// Ends of slices after which work is left.
    slices: Events,
    rotation: Rotation,
    ready: BTreeSet<Job>,
    cpus: Vec<Cpu>,
    /// Work left before each point, ns.
    left: Vec<u64>,
    /// Edges and work that each point still waits for.
    waits_for: Vec<u32>,
    /// Times of points, as far as they are known.
    times: Vec<u64>,
    done: Vec<u64>,
}

/// Computes the schedule on this many CPUs.
pub(super) fn limited(graph: &Graph, speeds: &Speeds, latencies: &Latencies, cpus: &Cpus) -> Schedule {
    simulate(graph, speeds, latencies, cpus, Rotation::new(PATIENCE))
}

/// Computes the same slice by slice, or as soon as the first slices repeat themselves by the repetition.
#[cfg(test)]
pub(super) fn limited_by(is_patient: bool, graph: &Graph, speeds: &Speeds, cpus: &Cpus) -> Schedule {
    let rotation = Rotation::new(if is_patient { u32::MAX } else { 1 });
    simulate(graph, speeds, &Latencies::Measured, cpus, rotation)
}

fn simulate(
    graph: &Graph,
    speeds: &Speeds,
    latencies: &Latencies,
    cpus: &Cpus,
    rotation: Rotation,
) -> Schedule {
    let points = 0..graph.points.len() as u32;
    let mut later: Vec<(u32, u32)> =
        (0..).zip(&graph.edges).map(|(number, edge)| (edge.from, number)).collect();
    later.sort_unstable();
    let mut simulation = Simulation {
        graph,
        speeds,
        latencies,
        allowed: &cpus.allowed,
        slice: cpus.slice,
        later,
        events: BinaryHeap::new(),
        slices: BinaryHeap::new(),
        rotation,
        ready: BTreeSet::new(),
        cpus: vec![Cpu::default(); cpus.count.max(1) as usize],
        left: vec![0; graph.points.len()],
        waits_for: points.clone().map(|point| graph.edges_to(point).len() as u32 + 1).collect(),
        times: vec![0; graph.points.len()],
        done: vec![0; graph.points.len()],
    };
    for point in points.filter(|point| graph.before(*point).is_none()) {
        let begin = if graph.is_source(point) { graph.points[point as usize].time } else { 0 };
        simulation.meets(point, begin);
    }
    simulation.run();
    Schedule { times: simulation.times, done: Some(simulation.done) }
}

impl Simulation<'_> {
    fn run(&mut self) {
        while let Some(now) = self.next().map(|(time, _)| time) {
            let mut slices_only = true;
            while let Some((_, event)) = self.next().filter(|(time, _)| *time == now) {
                let is_slice = self.slices.peek() == Some(&Reverse((now, event)));
                slices_only &= is_slice;
                if is_slice {
                    self.slices.pop()
                } else {
                    self.events.pop()
                };
                match event {
                    Event::Ran(point, cpu) => self.ran(now, point, cpu),
                    Event::Reached(point) => self.reached(now, point),
                }
            }
            self.dispatch(now);
            if slices_only {
                self.slices_ended(now);
            } else {
                self.rotation.ends();
            }
        }
    }

    /// The first event that has not been taken.
    fn next(&self) -> Option<(u64, Event)> {
        let heaps = [&self.events, &self.slices].into_iter();
        heaps.filter_map(|heap| heap.peek()).map(|Reverse(first)| *first).min()
    }

    /// One of the things that a point waits for is there, by which it is not before `time` (ns).
    fn meets(&mut self, point: u32, time: u64) {
        let place = point as usize;
        self.times[place] = self.times[place].max(time);
        self.waits_for[place] -= 1;
        if self.waits_for[place] == 0 {
            let recorded = &self.graph.points[place];
            if recorded.is_arrival {
                self.times[place] = self.times[place].max(recorded.time);
            }
            self.events.push(Reverse((self.times[place], Event::Reached(point))));
        }
    }

    fn reached(&mut self, now: u64, point: u32) {
        let first = self.later.partition_point(|(from, _)| *from < point);
        for place in first..self.later.len() {
            let (from, number) = self.later[place];
            if from != point {
                break;
            }
            let edge = &self.graph.edges[number as usize];
            self.meets(edge.to, now.saturating_add(self.latencies.of(edge)));
        }
        let next = point + 1;
        if (next as usize) < self.graph.points.len() && self.graph.before(next) == Some(point) {
            self.left[next as usize] = self.speeds.length(&self.graph.points[next as usize]);
            if self.left[next as usize] == 0 {
                self.work_is_done(now, next);
            } else {
                self.is_ready(now, next);
            }
        }
    }

    fn work_is_done(&mut self, now: u64, point: u32) {
        self.done[point as usize] = now;
        let recorded = &self.graph.points[point as usize];
        self.meets(point, now.saturating_add(recorded.fixed).saturating_add(self.speeds.outside(recorded)));
    }

    fn ran(&mut self, now: u64, point: u32, cpu: u32) {
        self.cpus[cpu as usize].runs = None;
        if self.left[point as usize] == 0 {
            self.work_is_done(now, point);
        } else {
            self.is_ready(now, point);
        }
    }

    fn is_ready(&mut self, now: u64, point: u32) {
        let recorded = self.graph.before(point).map_or(0, |before| self.graph.points[before as usize].time);
        self.ready.insert(Job { ready: now, recorded, point });
    }

    /// Gives the CPUs that are idle to jobs that are ready.
    fn dispatch(&mut self, now: u64) {
        for cpu in 0..self.cpus.len() as u32 {
            let Cpu { runs, thread, slice_end } = self.cpus[cpu as usize];
            if runs.is_some() || slice_end <= now {
                continue;
            }
            let goes_on = |job: &&Job| job.ready == now && Some(self.thread(job.point)) == thread;
            if let Some(job) =
                self.ready.iter().rev().take_while(|job| job.ready == now).find(goes_on).copied()
            {
                self.give(now, job, cpu, slice_end);
            }
        }
        for cpu in 0..self.cpus.len() as u32 {
            if self.cpus[cpu as usize].runs.is_some() {
                continue;
            }
            let job = self.ready.iter().find(|job| self.may_use(self.thread(job.point), cpu)).copied();
            if let Some(job) = job {
                self.give(now, job, cpu, now.saturating_add(self.slice));
            }
        }
    }

    fn thread(&self, point: u32) -> u32 {
        self.graph.points[point as usize].thread
    }

    fn may_use(&self, thread: u32, cpu: u32) -> bool {
        let exists = |cpu: &&u32| (**cpu as usize) < self.cpus.len();
        let allowed = self.allowed.get(thread as usize).map(Vec::as_slice).unwrap_or_default();
        !allowed.iter().any(|cpu| exists(&cpu)) || allowed.contains(&cpu)
    }

    fn give(&mut self, now: u64, job: Job, cpu: u32, slice_end: u64) {
        self.ready.remove(&job);
        let left = &mut self.left[job.point as usize];
        let piece = (*left).min(slice_end - now);
        *left -= piece;
        let event = Reverse((now.saturating_add(piece), Event::Ran(job.point, cpu)));
        let heap = if *left > 0 { &mut self.slices } else { &mut self.events };
        heap.push(event);
        let thread = Some(self.graph.points[job.point as usize].thread);
        self.cpus[cpu as usize] = Cpu { runs: Some(job.point), thread, slice_end };
    }
}
