//! What the CPUs and their clusters cost.

use serde::{Deserialize, Serialize};

/// What everything cost, by the model that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyRow {
    /// `J`, or `relative` where the model states no unit: units of its powers, times seconds.
    pub unit: String,
    /// What is known: the sum of the parts.
    pub total: f64,
    /// With unknown time in the cheapest states of the model.
    pub total_min: f64,
    /// With unknown time in the dearest states of the model.
    pub total_max: f64,
    /// What is known, by what it was spent for.
    pub parts: EnergyPartsRow,
    /// The same for each cluster, in the order of the clusters.
    pub clusters: Vec<ClusterEnergyRow>,
    /// Time in states that the model lacks.
    pub unpriced: Vec<UnpricedRow>,
    /// The file of the model.
    pub model: String,
    /// What is a guess, and what is odd about the model.
    pub notes: Vec<String>,
}

/// What a known energy was spent for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyPartsRow {
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

/// What a cluster and the CPUs that share its clock cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterEnergyRow {
    /// Name of the cluster.
    pub cluster: String,
    /// What is known: the sum of the parts.
    pub total: f64,
    /// With unknown time in the cheapest states of the model.
    pub total_min: f64,
    /// With unknown time in the dearest states of the model.
    pub total_max: f64,
    /// What is known, by what it was spent for.
    pub parts: EnergyPartsRow,
}

/// Time in a state that the model lacks. It widens the range where the model has any state of that kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpricedRow {
    /// Name of the cluster.
    pub cluster: String,
    /// The CPU; null for the cluster itself.
    pub cpu: Option<u32>,
    /// What it did, such as `active 850000 kHz` or `idle cpu-sleep`.
    pub what: String,
    /// How long, ns.
    pub ns: u64,
}
