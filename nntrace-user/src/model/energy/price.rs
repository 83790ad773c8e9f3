//! Energy of CPUs and clusters by their residencies.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{power::Residency, time_count::TimeCount};

use super::{
    matching::{self, Found},
    model::{ClusterModel, Cost, EnergyModel, IdleState, PState},
};
use crate::model::{
    Topology, cluster_residency::ClusterResidency, cpu_residency::CpuResidency, topology::ClusterDescription,
};

/// Energy of all clusters, in the unit of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Energy {
    /// Known energy: the sum of the parts.
    pub total: f64,
    /// Energy with unknown time in its cheapest states.
    pub total_min: f64,
    /// Energy with unknown time in its dearest states.
    pub total_max: f64,
    /// Known energy by what it was spent for.
    pub parts: EnergyParts,
    /// Energy of each cluster of the topology and its CPUs.
    pub clusters: Vec<ClusterEnergy>,
    /// Time in states that the model lacks. What they may have cost is in `total_min` and `total_max`, where the model
    /// has any state of their kind.
    pub unpriced: Vec<Unpriced>,
    /// Guesses, and oddities of the model.
    pub notes: Vec<String>,
}

/// Known energy by what it was spent for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EnergyParts {
    /// Clusters that were idle.
    pub cluster_idle: f64,
    /// Clusters that were active, on top of their CPUs.
    pub cluster_active: f64,
    /// CPUs that were idle.
    pub cpu_idle: f64,
    /// CPUs that ran.
    pub cpu_active: f64,
    /// Wake-ups, and entries of idle states.
    pub wakeups: f64,
}

/// Energy of a cluster and the CPUs that share its clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClusterEnergy {
    /// Name of the cluster.
    pub cluster: String,
    /// Known energy: the sum of the parts.
    pub total: f64,
    /// Energy with unknown time in its cheapest states.
    pub total_min: f64,
    /// Energy with unknown time in its dearest states.
    pub total_max: f64,
    /// Known energy by what it was spent for.
    pub parts: EnergyParts,
}

/// Time that has no price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unpriced {
    /// Name of the cluster.
    pub cluster: String,
    /// The CPU; `None` for the cluster itself.
    pub cpu: Option<u32>,
    /// State that has no price, such as `active 850000 kHz`.
    pub what: String,
    /// How long, ns.
    pub ns: u64,
}

impl EnergyParts {
    /// Returns the sum of all parts.
    #[must_use]
    pub(crate) fn sum(&self) -> f64 {
        self.cluster_idle + self.cluster_active + self.cpu_idle + self.cpu_active + self.wakeups
    }

    fn add(&mut self, other: &Self) {
        self.cluster_idle += other.cluster_idle;
        self.cluster_active += other.cluster_active;
        self.cpu_idle += other.cpu_idle;
        self.cpu_active += other.cpu_active;
        self.wakeups += other.wakeups;
    }
}

/// Prices what CPUs and clusters did; `clusters` in the order of the topology.
///
/// Source: the power contract, section 3. The result is the same for the same input, to the last bit.
#[must_use]
pub(crate) fn price(
    model: &EnergyModel,
    topology: &Topology,
    cpus: &[CpuResidency],
    clusters: &[ClusterResidency],
) -> Energy {
    let matched = matching::clusters(model, topology);
    let mut pricer = Pricer {
        topology,
        models: matched.clusters,
        accounts: topology.clusters.iter().map(|_| Account::default()).collect(),
        by_place: BTreeSet::new(),
        homeless: Vec::new(),
    };
    for (number, residency) in clusters.iter().enumerate().take(topology.clusters.len()) {
        pricer.cluster(number, residency);
    }
    for residency in cpus {
        pricer.cpu(residency, clusters);
    }
    let mut energy = pricer.energy(model);
    energy.notes.extend(matched.notes);
    energy.notes.extend(model.notes.iter().cloned());
    energy
}

/// The cluster's or the core's part of a cost.
pub(super) type Side = fn(&Cost) -> f64;
pub(super) const CLUSTER: Side = |cost| cost.cluster;
pub(super) const CORE: Side = |cost| cost.core;

/// Running sums of a cluster and its CPUs. Powers are summed as they stand in the model, times ns, wake-ups as they
/// stand there: whole numbers stay exact.
#[derive(Default)]
struct Account {
    cluster_idle: f64,
    cluster_active: f64,
    cpu_idle: f64,
    cpu_active: f64,
    wakeups: f64,
    /// Least cost of the time without a price.
    low: f64,
    /// Highest cost of the time without a price.
    high: f64,
    unpriced: Vec<(Option<u32>, String, u64)>,
}

impl Account {
    /// Adds time in one of the states of these powers; false if there are none.
    fn vague(&mut self, ns: u64, powers: impl Iterator<Item = f64>) -> bool {
        let range = powers.fold(None, |range: Option<(f64, f64)>, power| {
            let (low, high) = range.unwrap_or((power, power));
            Some((low.min(power), high.max(power)))
        });
        let Some((low, high)) = range else { return false };
        self.low += low * ns as f64;
        self.high += high * ns as f64;
        true
    }

    fn unpriced(&mut self, cpu: Option<u32>, what: impl Into<String>, ns: u64) {
        if ns > 0 {
            self.unpriced.push((cpu, what.into(), ns));
        }
    }

    /// Time at a frequency; returns what it costs where that is known.
    fn active(&mut self, model: &ClusterModel, cpu: Option<u32>, khz: Option<u32>, ns: u64) -> f64 {
        let side = if cpu.is_some() { CORE } else { CLUSTER };
        if let Some(state) = khz.and_then(|khz| model.p_state(khz)) {
            return side(&state.power) * ns as f64;
        }
        let has_range = self.vague(ns, p_powers(&model.p_states, side));
        match khz {
            Some(khz) => self.unpriced(cpu, format!("active {khz} kHz"), ns),
            None if !has_range => self.unpriced(cpu, "active, frequency unknown", ns),
            None => {}
        }
        0.0
    }
}

/// Returns the number of the cluster that a CPU goes idle with.
fn idle_domain(topology: &Topology, cpu: u32) -> Option<usize> {
    let is_its = |other: &ClusterDescription| other.domain.idles_together() && other.cpus.contains(&cpu);
    topology.clusters.iter().position(is_its)
}

/// Returns the model of a CPU's idle states. CPUs of different clocks differ, so the clock's cluster counts before the idle
/// domain's.
pub(super) fn idle_model<'a>(
    topology: &Topology,
    models: &[Option<&'a ClusterModel>],
    cpu: u32,
) -> Option<&'a ClusterModel> {
    let clock_model = topology.clock_of(cpu).and_then(|number| models[number]);
    let models = [clock_model, idle_domain(topology, cpu).and_then(|number| models[number])];
    models.into_iter().flatten().find(|model| !model.idle.is_empty()).or(clock_model)
}

pub(super) fn p_powers(states: &[PState], side: Side) -> impl Iterator<Item = f64> {
    states.iter().map(move |state| side(&state.power))
}

pub(super) fn idle_powers(states: &[IdleState], side: Side) -> impl Iterator<Item = f64> {
    states.iter().map(move |state| side(&state.power))
}

/// Costs of idle states, and their owners.
struct Idle<'a> {
    states: &'a [IdleState],
    wakeup: &'a Cost,
    /// The CPU; `None` for the cluster.
    cpu: Option<u32>,
    /// Whether the host has names for these states.
    described: bool,
}

struct Pricer<'a> {
    topology: &'a Topology,
    /// Model of each cluster of the topology.
    models: Vec<Option<&'a ClusterModel>>,
    accounts: Vec<Account>,
    /// Clusters of which states had to be matched by their place.
    by_place: BTreeSet<usize>,
    /// Residency of CPUs that are in no cluster.
    homeless: Vec<Unpriced>,
}

impl Pricer<'_> {
    fn cluster(&mut self, number: usize, residency: &ClusterResidency) {
        let description = &self.topology.clusters[number];
        let account = &mut self.accounts[number];
        let Some(model) = self.models[number] else {
            let active: u64 = residency.active.values().map(|sum| sum.ns).sum();
            let idle: u64 = residency.idle.values().map(|stay| stay.ns).sum();
            let ns = active + idle + residency.idle_unknown_ns + residency.unknown_ns;
            account.unpriced(None, "everything: no cluster of the model applies", ns);
            return;
        };
        let (has_clock, idles) = (description.domain.shares_clock(), description.domain.idles_together());
        if has_clock {
            for (&khz, &TimeCount { ns, .. }) in &residency.active {
                let cost = account.active(model, None, khz, ns);
                account.cluster_active += cost;
            }
        }
        let p_states = if has_clock { &model.p_states[..] } else { &[] };
        let states = if idles { &model.idle[..] } else { &[] };
        // What it does as a cluster of the other kind is not for this one to pay.
        let nothing = (has_clock != idles).then_some(0.0);
        let all = p_powers(p_states, CLUSTER).chain(idle_powers(states, CLUSTER)).chain(nothing);
        if !account.vague(residency.unknown_ns, all) {
            account.unpriced(None, "unknown", residency.unknown_ns);
        }
        if idles {
            let mut cpus = description.cpus.iter().filter_map(|cpu| self.topology.cpus.get(cpu));
            let described = cpus.any(|cpu| !cpu.idle_states.is_empty());
            let idle = Idle { states, wakeup: &model.wakeup, cpu: None, described };
            let name = |level| self.topology.level_name(&description.cpus, level);
            let cost = self.idle(number, &idle, &residency.idle, residency.idle_at_end, name);
            self.accounts[number].cluster_idle += cost;
            self.idle_unknown(number, &idle, residency.idle_unknown_ns);
        }
    }

    fn cpu(&mut self, residency: &CpuResidency, clusters: &[ClusterResidency]) {
        let cpu = residency.cpu;
        let clock = self.topology.clock_of(cpu);
        let Some(number) = clock.or_else(|| idle_domain(self.topology, cpu)) else {
            self.homeless.push(Unpriced {
                cluster: String::new(),
                cpu: Some(cpu),
                what: "everything: it is in no cluster".into(),
                ns: residency.total_ns() - residency.offline_ns,
            });
            return;
        };
        let clock_model = clock.and_then(|number| self.models[number]);
        // Without any, the row of the cluster shows that it has no price.
        let Some(idle_model) = idle_model(self.topology, &self.models, cpu) else { return };
        let account = &mut self.accounts[number];
        if let Some(model) = clock_model {
            let none = BTreeMap::new();
            let effective = clock.and_then(|number| clusters.get(number)?.effective.get(&cpu));
            let effective = effective.unwrap_or(&none);
            let mut rest: u64 = residency.running.values().map(|sum| sum.ns).sum();
            for (&khz, &ns) in effective {
                rest = rest.saturating_sub(ns);
                let cost = account.active(model, Some(cpu), khz, ns);
                account.cpu_active += cost;
            }
            // It ran while nothing was known of its cluster.
            account.active(model, Some(cpu), None, rest);
        }
        let p_states = clock_model.map_or(&[][..], |model| &model.p_states);
        let all = p_powers(p_states, CORE).chain(idle_powers(&idle_model.idle, CORE));
        if !account.vague(residency.unknown_ns, all) {
            account.unpriced(Some(cpu), "unknown", residency.unknown_ns);
        }
        let described = self.topology.cpus.get(&cpu).is_some_and(|cpu| !cpu.idle_states.is_empty());
        let idle = Idle { states: &idle_model.idle, wakeup: &idle_model.wakeup, cpu: Some(cpu), described };
        let name = |state| self.topology.idle_name(cpu, state);
        let cost = self.idle(number, &idle, &residency.idle, residency.idle_at_end, name);
        self.accounts[number].cpu_idle += cost;
        self.idle_unknown(number, &idle, residency.idle_unknown_ns);
    }

    /// Time in idle states, with wake-ups and entries; returns what the time costs where that is known.
    fn idle(
        &mut self,
        number: usize,
        idle: &Idle<'_>,
        stays: &BTreeMap<u32, Residency>,
        at_end: Option<u32>,
        name: impl Fn(u32) -> String,
    ) -> f64 {
        let side = if idle.cpu.is_some() { CORE } else { CLUSTER };
        let account = &mut self.accounts[number];
        let mut cost = 0.0;
        for (&state, stay) in stays {
            let name = name(state);
            let place = match matching::idle_state(idle.states, &name, state, idle.described) {
                Found::Named(place) => Some(place),
                Found::ByPlace(place) => {
                    self.by_place.insert(number);
                    Some(place)
                }
                Found::No => None,
            };
            let exits = stay.hits.saturating_sub(u64::from(at_end == Some(state))) as f64;
            if let Some(found) = place.map(|place| &idle.states[place]) {
                cost += side(&found.power) * stay.ns as f64;
                account.wakeups += side(&found.entry) * exits;
            } else {
                account.vague(stay.ns, idle_powers(idle.states, side));
                account.unpriced(idle.cpu, format!("idle {name}"), stay.ns);
            }
            let is_first = place.map_or(state == 0, |place| place == 0);
            if is_first == idle.cpu.is_some() {
                account.wakeups += side(idle.wakeup) * exits;
            }
        }
        cost
    }

    fn idle_unknown(&mut self, number: usize, idle: &Idle<'_>, ns: u64) {
        let side = if idle.cpu.is_some() { CORE } else { CLUSTER };
        let account = &mut self.accounts[number];
        if !account.vague(ns, idle_powers(idle.states, side)) {
            account.unpriced(idle.cpu, "idle, depth unknown", ns);
        }
    }

    fn energy(self, model: &EnergyModel) -> Energy {
        let (per_power, per_energy) = (model.per_power_ns(), model.per_energy());
        let mut energy = Energy::default();
        let (mut low, mut high) = (0.0, 0.0);
        for (description, account) in self.topology.clusters.iter().zip(self.accounts) {
            let parts = EnergyParts {
                cluster_idle: account.cluster_idle * per_power,
                cluster_active: account.cluster_active * per_power,
                cpu_idle: account.cpu_idle * per_power,
                cpu_active: account.cpu_active * per_power,
                wakeups: account.wakeups * per_energy,
            };
            energy.parts.add(&parts);
            low += account.low * per_power;
            high += account.high * per_power;
            let total = parts.sum();
            energy.clusters.push(ClusterEnergy {
                cluster: description.name.clone(),
                total,
                total_min: total + account.low * per_power,
                total_max: total + account.high * per_power,
                parts,
            });
            let cluster = &description.name;
            energy.unpriced.extend(account.unpriced.into_iter().map(|(cpu, what, ns)| Unpriced {
                cluster: cluster.clone(),
                cpu,
                what,
                ns,
            }));
        }
        energy.unpriced.extend(self.homeless);
        energy.total = energy.parts.sum();
        energy.total_min = energy.total + low;
        energy.total_max = energy.total + high;
        energy.notes.extend(self.by_place.into_iter().map(|number| {
            format!(
                "idle states of cluster {} have no names here: they are taken in the order of the model",
                self.topology.clusters[number].name
            )
        }));
        energy
    }
}
