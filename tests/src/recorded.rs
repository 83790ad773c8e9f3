//! Power events recorded by a kernel, swept by code other than the project's.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{model::Topology, replay::Options, report::snapshot::Snapshot};

use crate::{
    power::{Event, Residency, cluster::ClusterResidency},
    rows, trace, tracefs,
};

/// Event of a CPU at a time, ns.
pub type At = (u64, u32, Event);

/// Replays a recording of this system, in the format of tracefs' `trace`, and checks every time and every count
/// against the sweeps, to the nanosecond.
///
/// # Errors
/// When there is a line in another format.
///
/// # Panics
/// When a figure differs.
pub fn assert_replayed(text: &str, topology: &Topology) -> Result<Snapshot> {
    let options = Options { topology: Some(topology.clone()), ..Options::default() };
    let snapshot = trace::replay_with(text, &options)?;
    let mut events = tracefs::lines(text)?;
    // Within one instant, events of the lower CPU count first.
    events.sort_by_key(|&(at, cpu, _)| (at, cpu));
    let begin = events.first().context("nothing was recorded")?.0;
    let end = events.last().context("nothing was recorded")?.0;
    ensure!((snapshot.window.begin_ns, snapshot.window.end_ns) == (begin, end), "{:?}", snapshot.window);
    let events = for_policies(&events, topology);
    rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, end - begin);
    for row in &snapshot.cpus {
        let of_cpu: Vec<(u64, Event)> =
            events.iter().filter(|(_, cpu, _)| *cpu == row.cpu).map(|&(at, _, event)| (at, event)).collect();
        rows::assert_cpu(row, &Residency::sweep(&of_cpu, begin, end, None));
    }
    for row in &snapshot.clusters {
        let swept = ClusterResidency::sweep(&row.cpus, &events, begin, end, &BTreeMap::new());
        rows::assert_cluster(row, &snapshot.cpus, &swept);
    }
    Ok(snapshot)
}

/// Extends an event of one CPU of a policy to all of it.
#[must_use]
pub fn for_policies(events: &[At], topology: &Topology) -> Vec<At> {
    let each = events.iter().flat_map(|&(at, cpu, event)| match event {
        Event::Frequency(_) => topology.policy_of(cpu).into_iter().map(|cpu| (at, cpu, event)).collect(),
        Event::Idle(_) | Event::Online(_) | Event::Lost => vec![(at, cpu, event)],
    });
    each.collect()
}

/// Returns the events of these CPUs in a window, where the last one before it counts at its begin; and the
/// frequencies, kHz, that were requested by then.
#[must_use]
pub fn inside(events: &[At], cpus: &[u32], begin: u64, end: u64) -> (Vec<At>, BTreeMap<u32, u32>) {
    let of_cpus = || events.iter().copied().filter(|(_, cpu, _)| cpus.contains(cpu));
    let mut last_idle = BTreeMap::new();
    let mut khz = BTreeMap::new();
    for (_, cpu, event) in of_cpus().filter(|(at, ..)| *at <= begin) {
        match event {
            Event::Frequency(value) => drop(khz.insert(cpu, value)),
            Event::Idle(_) | Event::Online(_) | Event::Lost => drop(last_idle.insert(cpu, event)),
        }
    }
    let before = last_idle.into_iter().map(|(cpu, event)| (begin, cpu, event));
    let inside = before.chain(of_cpus().filter(|(at, ..)| *at > begin && *at < end));
    (inside.collect(), khz)
}
