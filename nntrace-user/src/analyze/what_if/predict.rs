//! The times of points with other speeds, as many CPUs as there are threads.

use std::collections::BTreeMap;

use crate::analyze::run_graph::graph::{Edge, Graph, IterationPart, Kind, Point};

/// Speeds of components, as multiples of the recorded ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Speeds(Vec<f64>);

impl Speeds {
    /// The recorded speeds of this many components.
    pub(super) fn recorded(components: usize) -> Self {
        Self(vec![1.0; components])
    }

    /// Returns these speeds with another one of a component.
    pub(super) fn with(mut self, component: u32, speed: f64) -> Self {
        if let Some(place) = self.0.get_mut(component as usize) {
            *place = speed;
        }
        self
    }

    /// Returns these speeds with a component this many times as fast.
    pub(super) fn times(self, component: u32, factor: f64) -> Self {
        let speed = self.0.get(component as usize).copied().unwrap_or(1.0);
        self.with(component, speed * factor)
    }

    /// Returns the length of work at its speed, ns; that of a component which is infinitely fast is 0.
    pub(super) fn length(&self, point: &Point) -> u64 {
        self.scaled(point.component, point.run)
    }

    /// Returns the length of a wait for a CPU that others had, ns.
    pub(super) fn outside(&self, point: &Point) -> u64 {
        if point.is_interruption { self.scaled(point.component, point.outside) } else { point.outside }
    }

    fn scaled(&self, component: u32, length: u64) -> u64 {
        let speed = self.0.get(component as usize).copied().unwrap_or(1.0);
        if (speed - 1.0).abs() < f64::EPSILON {
            return length;
        }
        let length = (length as f64 / speed).round();
        // A float beyond the range becomes its end.
        #[expect(clippy::cast_sign_loss, reason = "lengths and speeds are not negative")]
        let length = length as u64;
        length
    }
}

/// Latencies of the edges that were waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Latencies {
    /// As measured, each on its own.
    Measured,
    /// One latency for all edges of a kind, ns.
    Of(BTreeMap<Kind, u64>),
}

impl Latencies {
    /// Returns the latencies that this many percent of a kind do not exceed.
    pub(super) fn percentile(graph: &Graph, percent: usize) -> Self {
        let at = |sorted: &Vec<u64>| sorted.get((sorted.len().saturating_sub(1)) * percent / 100).copied();
        let all = graph.latencies();
        Self::Of(all.iter().filter_map(|(kind, sorted)| Some((*kind, at(sorted)?))).collect())
    }

    /// Returns the latency of an edge, ns.
    pub(super) fn of(&self, edge: &Edge) -> u64 {
        match self {
            Self::Of(kinds) if edge.has_waited => kinds.get(&edge.kind).copied().unwrap_or(edge.latency),
            _ => edge.latency,
        }
    }
}

/// Predicted schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Times of points, ns.
    pub(super) times: Vec<u64>,
    /// Times (ns) at which the work before points was done, where there are fewer CPUs than threads.
    pub(super) done: Option<Vec<u64>>,
}

/// Computes the schedule with as many CPUs as there are threads.
pub(super) fn unlimited(graph: &Graph, speeds: &Speeds, latencies: &Latencies) -> Schedule {
    let mut times = vec![0_u64; graph.points.len()];
    for &number in &graph.order {
        let point = &graph.points[number as usize];
        let mut time = match graph.before(number) {
            Some(before) => {
                let work = speeds.length(point).saturating_add(point.fixed).saturating_add(point.queued);
                times[before as usize].saturating_add(work)
            }
            None if graph.is_source(number) => point.time,
            None => 0,
        };
        for edge in graph.edges_to(number) {
            time = time.max(times[edge.from as usize].saturating_add(latencies.of(edge)));
        }
        if point.is_arrival {
            time = time.max(point.time);
        }
        times[number as usize] = time;
    }
    Schedule { times, done: None }
}

impl Schedule {
    /// Returns the time from the first marked point to the last one, ns.
    pub(super) fn makespan(&self, graph: &Graph) -> u64 {
        let (first, last) = self.extent(graph);
        last.saturating_sub(first)
    }

    /// Returns the times (ns) of the first marked point and of the last one.
    pub(super) fn extent(&self, graph: &Graph) -> (u64, u64) {
        let marked = || graph.points.iter().zip(&self.times).filter(|(point, _)| point.is_marked);
        let times = || marked().map(|(_, time)| *time);
        times().min().zip(times().max()).unwrap_or_default()
    }

    /// Returns the latencies of iterations, in the order of their numbers, ns.
    pub(super) fn iterations(&self, graph: &Graph) -> Vec<u64> {
        let time = |point: u32| self.times[point as usize];
        let of_one = |parts: &[IterationPart]| {
            let begin = parts.iter().map(|part| time(part.begin)).min().unwrap_or(0);
            let end = parts.iter().map(|part| time(part.end)).max().unwrap_or(0);
            end.saturating_sub(begin)
        };
        graph.iterations.chunk_by(|a, b| a.iteration == b.iteration).map(of_one).collect()
    }

    /// Returns how many hand-overs are taken before they are given.
    pub(super) fn violations(&self, graph: &Graph) -> u64 {
        let time = |point: u32| self.times[point as usize];
        graph.hand_overs.iter().filter(|(from, to)| time(*to) < time(*from)).count() as u64
    }
}
