//! Power over time: what the states that CPUs and clusters are in at one moment cost.

use std::collections::BTreeMap;

use nntrace_common::{power::Residency, time_count::TimeCount};
use rustc_hash::FxHashMap;

use super::{model::EnergyModel, price};
use crate::model::{
    Topology,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuResidency,
    timeline::{CpuState, Timeline, Timelines, visit_together},
};

/// A second, ns.
const SECOND: u64 = 1_000_000_000;

/// Shows every stretch in which no state changes: its begin and end (ns), and the known power of each cluster with the CPUs that
/// share its clock, in the order of the topology and in the unit of results by second. Wake-ups, which take no time, are in none.
pub(crate) fn visit_power(
    model: &EnergyModel,
    topology: &Topology,
    timelines: &Timelines,
    mut stretch: impl FnMut(u64, u64, &[f64]),
) {
    let clusters = timelines.clusters.iter().map(|(_, timeline)| timeline);
    let lanes: Vec<&Timeline> = clusters.chain(timelines.cpus.values()).collect();
    let cpus: Vec<(u32, Option<usize>)> =
        timelines.cpus.keys().map(|cpu| (*cpu, topology.clock_of(*cpu))).collect();
    let mut prices = Prices { model, topology, known: FxHashMap::default() };
    let mut powers = vec![0.0; topology.clusters.len()];
    visit_together(&lanes, |begin, end, states| {
        let (of_clusters, of_cpus) = states.split_at(timelines.clusters.len());
        powers.fill(0.0);
        let mut add = |costs: &[f64]| powers.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        for (number, state) in of_clusters.iter().enumerate() {
            add(prices.of(Lane::Cluster(number), *state));
        }
        for ((cpu, clock), state) in cpus.iter().zip(of_cpus) {
            let state = match state {
                // It runs at the cluster's frequency, whatever it requests.
                CpuState::Running(_) => match clock.and_then(|clock| of_clusters.get(clock)) {
                    Some(CpuState::Running(khz)) => CpuState::Running(*khz),
                    _ => CpuState::Running(None),
                },
                other => *other,
            };
            add(prices.of(Lane::Cpu(*cpu), state));
        }
        stretch(begin, end, &powers);
    });
}

/// Cluster, by its place in the topology, or CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Cluster(usize),
    Cpu(u32),
}

/// Powers of states, each priced once.
struct Prices<'a> {
    model: &'a EnergyModel,
    topology: &'a Topology,
    known: FxHashMap<(Lane, CpuState), Vec<f64>>,
}

impl Prices<'_> {
    /// Returns the energy of each cluster when one lane is in a state for a second.
    fn of(&mut self, lane: Lane, state: CpuState) -> &[f64] {
        let Self { model, topology, known } = self;
        known.entry((lane, state)).or_insert_with(|| second_of(model, topology, lane, state))
    }
}

/// Returns the energy of each cluster when one lane is in a state for a second.
fn second_of(model: &EnergyModel, topology: &Topology, lane: Lane, state: CpuState) -> Vec<f64> {
    let mut clusters = vec![ClusterResidency::default(); topology.clusters.len()];
    let mut cpus = Vec::new();
    let idle = |state| BTreeMap::from([(state, Residency { ns: SECOND, ..Residency::NONE })]);
    let running = |khz| BTreeMap::from([(khz, TimeCount::new(SECOND, 0))]);
    match lane {
        Lane::Cluster(number) => match state {
            CpuState::Running(khz) => clusters[number].active = running(khz),
            CpuState::Idle(level) => clusters[number].idle = idle(level),
            CpuState::IdleUnknown | CpuState::Offline | CpuState::Unknown => {}
        },
        Lane::Cpu(cpu) => {
            let mut residency = CpuResidency::none(cpu);
            match state {
                CpuState::Running(khz) => {
                    residency.running = running(khz);
                    if let Some(clock) = topology.clock_of(cpu) {
                        clusters[clock].effective = BTreeMap::from([(cpu, BTreeMap::from([(khz, SECOND)]))]);
                    }
                }
                CpuState::Idle(state) => residency.idle = idle(state),
                CpuState::IdleUnknown | CpuState::Offline | CpuState::Unknown => {}
            }
            cpus.push(residency);
        }
    }
    price(model, topology, &cpus, &clusters).clusters.iter().map(|cluster| cluster.total).collect()
}
