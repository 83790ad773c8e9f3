//! What the CPUs and their clusters did.

use serde::{Deserialize, Serialize};

/// What one CPU did in the window. The times add up to the window exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuRow {
    /// CPU number.
    pub cpu: u32,
    /// Name of its cluster.
    pub cluster: String,
    /// Idle, by state.
    pub idle: Vec<IdleRow>,
    /// Running, by requested frequency.
    pub running: Vec<FrequencyRow>,
    /// Running, by the cluster's frequency.
    pub effective: Vec<EffectiveRow>,
    /// Idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Offline, ns.
    pub offline_ns: u64,
    /// Nothing known, ns.
    pub unknown_ns: u64,
    /// Where it is known from what the CPU did when the window began.
    #[serde(default)]
    pub initial: InitialRow,
}

/// Where it is known from what a CPU did when the window began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InitialRow {
    /// Idle or running: `event`, one between attaching and the begin; `kernel`, read from its run queue; `sysfs`, not
    /// online; `first_event`, its first one in the window; `unknown`.
    pub idle: String,
    /// Requested frequency: `event`, one between attaching and the begin; `sysfs`, read from the policy; `unknown`.
    pub frequency: String,
}

impl Default for InitialRow {
    fn default() -> Self {
        Self { idle: "unknown".into(), frequency: "unknown".into() }
    }
}

/// Time in one idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleRow {
    /// Number of the state in that CPU's own table.
    pub state: u32,
    /// Its name.
    pub name: String,
    /// Time in it, ns.
    pub ns: u64,
    /// How often it was entered.
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
    /// 90th percentile of stays, ns.
    #[serde(default)]
    pub p90_ns: Option<u64>,
    /// 99th percentile of stays, ns.
    #[serde(default)]
    pub p99_ns: Option<u64>,
    /// Stays shorter than the state's target residency; null where that is not known.
    pub early: Option<u64>,
    /// Stays long enough for the next deeper state; null where that is not known.
    pub late: Option<u64>,
}

/// Running time at one frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrequencyRow {
    /// Frequency, kHz; null when not known.
    pub khz: Option<u32>,
    /// Time, ns.
    pub ns: u64,
    /// How many separate stretches.
    pub hits: u64,
}

/// Running time at one effective frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveRow {
    /// Frequency, kHz; null when not known.
    pub khz: Option<u32>,
    /// Time, ns.
    pub ns: u64,
}

/// What one cluster did in the window. The times add up to the window exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterRow {
    /// Its name.
    pub cluster: String,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// What they have in common: `idle` when they go idle together, `frequency` when they share a clock, or `both`.
    #[serde(default = "both")]
    pub domain: String,
    /// At least one CPU running, by the highest requested frequency of those that run; without one when the CPUs share
    /// no clock.
    pub active: Vec<FrequencyRow>,
    /// All CPUs idle, by the deepest state that they have in common; `state` is its level.
    pub idle: Vec<IdleRow>,
    /// How many CPUs ran at once; the time in which a CPU was unknown or offline comes last.
    pub concurrency: Vec<ConcurrencyRow>,
    /// All idle, depth not known, ns.
    pub idle_unknown_ns: u64,
    /// All offline, ns.
    pub offline_ns: u64,
    /// Nothing known, ns.
    pub unknown_ns: u64,
}

/// Time during which so many CPUs ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyRow {
    /// CPUs running; `None` while a CPU of the cluster was unknown or offline, however many others ran.
    pub running_cpus: Option<u32>,
    /// Time, ns.
    pub ns: u64,
}

fn both() -> String {
    "both".into()
}
