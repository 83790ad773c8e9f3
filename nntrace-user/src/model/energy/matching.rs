//! Which cluster of a model applies to which cluster of the machine, and which of its idle states to which state.

use super::model::{ClusterModel, EnergyModel, IdleState};
use crate::model::{
    cpu_list,
    topology::{Domain, Topology},
};

/// The clusters of a model, beside those of the machine.
pub(super) struct Matched<'a> {
    /// Model of each cluster of the topology.
    pub(super) clusters: Vec<Option<&'a ClusterModel>>,
    /// Guesses, and parts of the model that are not used.
    pub(super) notes: Vec<String>,
}

/// Finds the machine's cluster for each of the model's: with the same CPUs where the model names them, else of the same
/// name, else the first that is left, those that share a clock before others.
pub(super) fn clusters<'a>(model: &'a EnergyModel, topology: &Topology) -> Matched<'a> {
    let mut matched = Matched { clusters: vec![None; topology.clusters.len()], notes: Vec::new() };
    let (with_cpus, without): (Vec<_>, Vec<_>) =
        model.clusters.iter().partition(|cluster| cluster.cpus.is_some());
    for cluster in with_cpus {
        let cpus = cluster.cpus.as_deref().unwrap_or_default();
        match topology.clusters.iter().position(|description| description.cpus == cpus) {
            Some(number) => matched.clusters[number] = Some(cluster),
            None => matched.notes.push(format!(
                "no cluster here has the CPUs {list} of the model's cluster {name}: it is not used; --cluster \
                 {name}={list} makes one of them",
                list = cpu_list::format(cpus),
                name = cluster.name,
            )),
        }
    }
    let mut nameless = Vec::new();
    for cluster in without {
        let is_it = |name: &str| bare(name) == bare(&cluster.name);
        let mut numbered = topology.clusters.iter().zip(&mut matched.clusters);
        match numbered.find(|(description, taken)| taken.is_none() && is_it(&description.name)) {
            Some((_, place)) => *place = Some(cluster),
            None => nameless.push(cluster),
        }
    }
    let mut left: Vec<usize> = (0..topology.clusters.len()).collect();
    left.retain(|&number| matched.clusters[number].is_none());
    left.sort_by_key(|&number| !topology.clusters[number].domain.shares_clock());
    let mut left = left.into_iter();
    for cluster in nameless {
        let Some(number) = left.next() else {
            matched.notes.push(format!("no cluster here is left for the model's cluster {}", cluster.name));
            continue;
        };
        matched.clusters[number] = Some(cluster);
        matched.notes.push(format!(
            "the model's cluster {} is taken for cluster {} (CPUs {}) only because of its place",
            cluster.name,
            topology.clusters[number].name,
            cpu_list::format(&topology.clusters[number].cpus),
        ));
    }
    matched.note_unused(topology);
    matched
}

impl Matched<'_> {
    /// Tells which powers of clusters have nothing that they could apply to.
    fn note_unused(&mut self, topology: &Topology) {
        for (cluster, description) in self.clusters.iter().zip(&topology.clusters) {
            let Some(cluster) = cluster else { continue };
            let costs = |costs: bool, what: &str| costs.then(|| what.to_owned());
            let unused = match description.domain {
                Domain::Both => None,
                Domain::Frequency => costs(
                    cluster.idle.iter().any(|state| state.power.cluster > 0.0 || state.entry.cluster > 0.0)
                        || cluster.wakeup.cluster > 0.0,
                    "do not go idle by themselves: what idle states and wake-ups cost the cluster is not used",
                ),
                Domain::Idle => costs(
                    !cluster.p_states.is_empty(),
                    "share no clock: what frequencies cost there is not used",
                ),
            };
            self.notes.extend(unused.map(|unused| {
                format!(
                    "the CPUs {} of cluster {} {unused}",
                    cpu_list::format(&description.cpus),
                    description.name
                )
            }));
        }
    }
}

/// `A` for `A` and for `clusterA`.
fn bare(name: &str) -> &str {
    name.strip_prefix("cluster").filter(|bare| !bare.is_empty()).unwrap_or(name)
}

/// The state of a model that an idle state of some CPUs is, as its place.
pub(super) enum Found {
    /// It has that name.
    Named(usize),
    /// The CPUs' states have no names here: it has that place.
    ByPlace(usize),
    /// The model lacks it.
    No,
}

/// Finds the state that is called `name` here and is so deep; `described`: whether the names are those of the machine.
pub(super) fn idle_state(states: &[IdleState], name: &str, level: u32, described: bool) -> Found {
    let level = level as usize;
    match states.iter().position(|state| state.name == name) {
        Some(place) => Found::Named(place),
        None if !described && level < states.len() => Found::ByPlace(level),
        None => Found::No,
    }
}
