//! States of CPUs and clusters over time, as a page draws them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    model::timeline::{CpuState, Timelines},
    report::{
        cpu_or_cluster::{self, CpuOrCluster},
        snapshot::Snapshot,
    },
};

/// Stretches of all lanes at most.
const MOST: usize = 150_000;
/// Stretches of one lane at least, where it has them.
const LEAST: usize = 1_000;
/// Stretches of one lane at most.
const MOST_OF_ONE: usize = 30_000;

/// States of a cluster or a CPU, one after the other.
#[derive(Serialize)]
pub(super) struct PowerLane<'a> {
    /// Name of the cluster, its own or the CPU's.
    cluster: &'a str,
    /// CPU; null for a cluster.
    cpu: Option<u32>,
    /// Time within which the order of states is not known, ns; null where it is everywhere.
    resolution: Option<u64>,
    states: Vec<State>,
    /// Begin of the first stretch, from that of the run's window on, ns.
    begin: i64,
    /// Numbers of the states of the stretches.
    state: Vec<usize>,
    /// Times of the stretches, ns: each begins where the one before it ends.
    ns: Vec<u64>,
}

/// State that a lane has stretches of.
#[derive(Serialize)]
struct State {
    kind: &'static str,
    /// Frequency; null of one that is not known, and of other kinds.
    khz: Option<u32>,
    /// Number of an idle state.
    level: Option<u32>,
    /// Name, as tables have it.
    name: String,
}

/// Returns the lanes, each cluster followed by its CPUs.
pub(super) fn lanes<'a>(snapshot: &'a Snapshot, timelines: &Timelines) -> Vec<PowerLane<'a>> {
    let clusters: BTreeMap<&str, _> =
        timelines.clusters.iter().map(|(name, timeline)| (name.as_str(), timeline)).collect();
    let count = timelines.clusters.len() + timelines.cpus.len();
    let most = (MOST / count.max(1)).clamp(LEAST, MOST_OF_ONE);
    let lane = |unit: CpuOrCluster| {
        let row = cpu_or_cluster::find(snapshot, &unit)?;
        let (timeline, cpu) = match &unit {
            CpuOrCluster::Cluster(name) => (*clusters.get(name.as_str())?, None),
            CpuOrCluster::Cpu(cpu) => (timelines.cpus.get(cpu)?, Some(*cpu)),
        };
        let mut lane = PowerLane {
            cluster: row.cluster,
            cpu,
            resolution: timeline.resolution(),
            states: Vec::new(),
            begin: timeline.begin().wrapping_sub(snapshot.window.begin_ns).cast_signed(),
            state: Vec::new(),
            ns: Vec::new(),
        };
        let mut numbers: BTreeMap<CpuState, usize> = BTreeMap::new();
        for piece in timeline.pieces(most) {
            if piece.parts.len() > 1 && lane.resolution.is_none() {
                lane.resolution = Some(piece.end - piece.begin);
            }
            for (state, ns) in piece.parts {
                let number = *numbers.entry(state).or_insert_with(|| {
                    lane.states.push(State::new(state, cpu_or_cluster::cpu_state_name(state, row.idle)));
                    lane.states.len() - 1
                });
                // What is the same on both sides of an edge of pieces is one stretch.
                match (lane.state.last(), lane.ns.last_mut()) {
                    (Some(last), Some(sum)) if *last == number => *sum += ns,
                    _ => {
                        lane.state.push(number);
                        lane.ns.push(ns);
                    }
                }
            }
        }
        Some(lane)
    };
    cpu_or_cluster::all(snapshot).into_iter().filter_map(lane).collect()
}

impl State {
    fn new(state: CpuState, name: String) -> Self {
        let (kind, khz, level) = match state {
            CpuState::Running(khz) => ("running", khz, None),
            CpuState::Idle(level) => ("idle", None, Some(level)),
            CpuState::IdleUnknown => ("idle_unknown", None, None),
            CpuState::Offline => ("offline", None, None),
            CpuState::Unknown => ("unknown", None, None),
        };
        Self { kind, khz, level, name }
    }
}
