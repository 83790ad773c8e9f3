//! Residency of CPUs and their clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    initial_state::{FrequencySource, IdleSource},
    topology::Domain,
};

/// Times of one CPU in the window; they add up to the window exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuRow {
    /// CPU number.
    pub cpu: u32,
    /// Name of its cluster.
    pub cluster: String,
    /// Time idle, by state.
    pub idle: Vec<IdleRow>,
    /// Time running, by requested frequency.
    pub running: Vec<FrequencyRow>,
    /// Time running, by the cluster's frequency.
    pub effective: Vec<EffectiveRow>,
    /// Time idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Time offline, ns.
    pub offline_ns: u64,
    /// Time of which nothing is known, ns.
    pub unknown_ns: u64,
    /// Sources of what the CPU did when the window began.
    #[serde(default)]
    pub initial: InitialRow,
}

/// Sources of what a CPU did when the window began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InitialRow {
    /// Source of whether it was idle or running.
    pub idle: IdleSource,
    /// Source of the requested frequency.
    pub frequency: FrequencySource,
}

/// Time in one idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleRow {
    /// Number of the state in that CPU's own table; of a cluster, its level.
    pub state: u32,
    /// Name of the state; empty where it is not known.
    pub name: String,
    /// Time in it, ns.
    pub ns: u64,
    /// Times that it was entered.
    pub hits: u64,
    /// Shortest stay, ns; null without hits.
    pub min_ns: Option<u64>,
    /// Longest stay, ns; null without hits.
    pub max_ns: Option<u64>,
    /// Stays of which both ends lie within the window and whose events were all seen: what follows is of these.
    #[serde(default)]
    pub whole_stays: u64,
    /// Median stay, ns; null without whole stays.
    #[serde(default)]
    pub p50_ns: Option<u64>,
    /// 90th percentile of stays, ns; null without whole stays.
    #[serde(default)]
    pub p90_ns: Option<u64>,
    /// 99th percentile of stays, ns; null without whole stays.
    #[serde(default)]
    pub p99_ns: Option<u64>,
    /// Stays shorter than the state's target residency; null where that is not known.
    pub early: Option<u64>,
    /// Stays long enough for the next deeper state; null where that is not known.
    pub late: Option<u64>,
}

/// Running time at one frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyRow {
    /// Frequency, kHz; null when not known.
    pub khz: Option<u32>,
    /// Time, ns.
    pub ns: u64,
    /// Separate stretches of it.
    pub hits: u64,
}

/// Running time at one effective frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectiveRow {
    /// Frequency, kHz; null when not known.
    pub khz: Option<u32>,
    /// Time, ns.
    pub ns: u64,
}

/// Times of one cluster in the window; they add up to the window exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterRow {
    /// Name of the cluster.
    pub cluster: String,
    /// Numbers of its CPUs.
    pub cpus: Vec<u32>,
    /// Domain that its CPUs form.
    #[serde(default)]
    pub domain: Domain,
    /// Time with at least one CPU running, by the highest requested frequency of those that run; without a frequency when
    /// the CPUs share no clock.
    pub active: Vec<FrequencyRow>,
    /// Time with all CPUs idle, by the deepest state that they have in common; `state` is its level.
    pub idle: Vec<IdleRow>,
    /// Time by how many CPUs ran at once; the time in which a CPU was unknown or offline comes last.
    pub concurrency: Vec<ConcurrencyRow>,
    /// Time with all CPUs idle, depth not known, ns.
    pub idle_unknown_ns: u64,
    /// Time with all CPUs offline, ns.
    pub offline_ns: u64,
    /// Time of which nothing is known, ns.
    pub unknown_ns: u64,
}

/// Time during which this many CPUs ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConcurrencyRow {
    /// CPUs running; null while a CPU of the cluster was unknown or offline, however many others ran.
    pub running_cpus: Option<u32>,
    /// Time, ns.
    pub ns: u64,
}
