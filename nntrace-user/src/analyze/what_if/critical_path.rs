//! The longest chain of a schedule: the work and the waits that its length consists of.

use std::collections::BTreeMap;

use super::predict::{Latencies, Schedule, Speeds};
use crate::analyze::run_graph::graph::{Graph, Kind};

/// Share of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    /// Work of a component.
    Work(u32),
    /// Latency of edges of a kind.
    Latency(Kind),
    /// Waiting for a CPU.
    Cpu,
    /// Waits that nothing in the graph explains.
    Fixed,
    /// Input from outside that came no earlier.
    Arrival,
    /// Before the thread had begun on which the chain begins.
    Begin,
}

/// Returns the parts of the chain that ends with the last marked point, ns: they add up to the makespan.
pub(super) fn parts(
    graph: &Graph,
    schedule: &Schedule,
    speeds: &Speeds,
    latencies: &Latencies,
) -> BTreeMap<Part, u64> {
    let mut parts: BTreeMap<Part, u64> = BTreeMap::new();
    let (begin, end) = schedule.extent(graph);
    let time = |point: u32| schedule.times[point as usize];
    let marked = (0..graph.points.len() as u32).filter(|point| graph.points[*point as usize].is_marked);
    let Some(mut at) = marked.filter(|point| time(*point) == end).min() else { return parts };
    let mut add = |part: Part, from: u64, to: u64| {
        let length = to.saturating_sub(from.max(begin));
        if length > 0 {
            *parts.entry(part).or_default() += length;
        }
    };
    while time(at) > begin {
        let point = &graph.points[at as usize];
        let now = time(at);
        let by_edge = || {
            let edges = graph.edges_to(at).iter();
            edges
                .filter(|edge| time(edge.from).saturating_add(latencies.of(edge)) == now)
                .max_by_key(|edge| time(edge.from))
        };
        let before = graph.before(at);
        let work = speeds.length(point);
        let queued = if schedule.done.is_some() { speeds.outside(point) } else { point.queued };
        let done = match (&schedule.done, before) {
            (Some(done), Some(_)) => done[at as usize],
            (None, Some(before)) => time(before).saturating_add(work),
            _ => 0,
        };
        if let Some(before) =
            before.filter(|_| done.saturating_add(point.fixed).saturating_add(queued) == now)
        {
            add(Part::Cpu, now - queued, now);
            add(Part::Fixed, done, done + point.fixed);
            // The work may have been interrupted: the rest of the time went by without a CPU.
            let idle = done.saturating_sub(time(before)).saturating_sub(work);
            add(Part::Cpu, time(before), time(before) + idle);
            add(Part::Work(point.component), time(before) + idle, done);
            at = before;
        } else if let Some(edge) = by_edge() {
            add(Part::Latency(edge.kind), time(edge.from), now);
            at = edge.from;
        } else {
            add(if point.is_arrival { Part::Arrival } else { Part::Begin }, begin, now);
            break;
        }
    }
    parts
}
