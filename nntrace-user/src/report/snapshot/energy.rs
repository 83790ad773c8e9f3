//! Energy of CPUs and their clusters.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EnergyShareRow;
use crate::model::energy::ResultUnit;

/// Energy of all CPUs and clusters, by the model that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyRow {
    /// Unit of every energy here.
    pub unit: ResultUnit,
    /// Energy of the known time: the sum of the parts.
    pub total: f64,
    /// Energy with unknown time in the cheapest states of the model.
    pub total_min: f64,
    /// Energy with unknown time in the dearest states of the model.
    pub total_max: f64,
    /// Energy of the known time, by what it was spent for.
    pub parts: EnergyPartsRow,
    /// Energy of each cluster, in the order of `clusters`.
    pub clusters: Vec<ClusterEnergyRow>,
    /// Energy by process, layer and phase, where there are context switches. It adds up to that of all exactly: sums of the
    /// numbers are the total, its minimum and its maximum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseEnergyRow>,
    /// Time in states that the model lacks.
    pub unpriced: Vec<UnpricedRow>,
    /// Name of the model's file.
    pub model: String,
    /// Notes for people: guesses, and oddities of the model.
    pub notes: Vec<String>,
}

/// Energy of a known time, by what it was spent for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyPartsRow {
    /// Energy of clusters that were idle.
    pub cluster_idle: f64,
    /// Energy of clusters that were active, on top of their CPUs.
    pub cluster_active: f64,
    /// Energy of CPUs that were idle.
    pub cpu_idle: f64,
    /// Energy of CPUs that ran.
    pub cpu_active: f64,
    /// Energy of wake-ups, and of entries into idle states.
    pub wakeups: f64,
}

/// Energy of a cluster and of the CPUs that share its clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterEnergyRow {
    /// Name of the cluster.
    pub cluster: String,
    /// Energy of the known time: the sum of the parts.
    pub total: f64,
    /// Energy with unknown time in the cheapest states of the model.
    pub total_min: f64,
    /// Energy with unknown time in the dearest states of the model.
    pub total_max: f64,
    /// Energy of the known time, by what it was spent for.
    pub parts: EnergyPartsRow,
}

/// Energy of the CPUs while they ran a layer and phase of a process, with its share of their clusters'.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseEnergyRow {
    /// Process id; null for all that no thread of a traced process ran.
    pub pid: Option<u32>,
    /// Layer; null for what was outside of sections.
    pub layer: Option<Layer>,
    /// Phase; null for what was outside of sections.
    pub phase: Option<Phase>,
    /// Energy.
    #[serde(flatten)]
    pub energy: EnergyShareRow,
}

/// Time in a state that the model lacks. It widens the range where the model has any state of that kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnpricedRow {
    /// Name of the cluster.
    pub cluster: String,
    /// CPU number; null for the cluster itself.
    pub cpu: Option<u32>,
    /// State that has no price, such as `active 850000 kHz` or `idle cpu-sleep`.
    pub what: String,
    /// Time in it, ns.
    pub ns: u64,
}
