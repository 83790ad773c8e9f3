//! Resources that sections used: time on CPU, waits, wake-ups, energy.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SiteRow;

/// Resources by what used them. Each list has all of the exclusive time of sections that its rows are about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTable {
    /// By process, layer and phase; after those of a process, what its threads did outside of sections.
    pub phases: Vec<PhaseUsageRow>,
    /// By function.
    pub functions: Vec<FunctionUsageRow>,
    /// By function of iterations; what was done in an inner one is in that of its own function alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<IterationUsageRow>,
    /// By account; what nobody is charged with last. Nothing where no mark names an account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountUsageRow>,
    /// Energy of all else: other processes, idle CPUs, wake-ups. It and that of `phases` add up to the energy of all CPUs and
    /// clusters exactly. Null without an energy model.
    pub rest: Option<EnergyShareRow>,
}

/// Resources that were used in a layer and phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseUsageRow {
    /// Process id.
    pub pid: u32,
    /// Name of the process; empty if it could not be read.
    pub comm: String,
    /// Layer; null for the time of threads outside of sections.
    pub layer: Option<Layer>,
    /// Phase; null for the time of threads outside of sections.
    pub phase: Option<Phase>,
    /// Resources.
    #[serde(flatten)]
    pub usage: UsageRow,
}

/// Resources that a function used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionUsageRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Resources.
    #[serde(flatten)]
    pub usage: UsageRow,
}

/// Resources that were used in the iterations of a function, ended or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationUsageRow {
    /// Process id.
    pub pid: u32,
    /// Name of the function.
    pub name: String,
    /// Number of the iteration, in snapshots of before they were summed by function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub iter: Option<u64>,
    /// Resources.
    #[serde(flatten)]
    pub usage: UsageRow,
}

/// Resources that an account is charged with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountUsageRow {
    /// Name of the account; null for what nobody is charged with.
    pub account: Option<String>,
    /// Resources.
    #[serde(flatten)]
    pub usage: UsageRow,
}

/// Resources that were used in some time of threads. The first five add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// Running, ns.
    pub on_cpu_ns: u64,
    /// Waiting for a CPU, ns.
    pub runnable_ns: u64,
    /// Blocked so that signals wake, or stopped, ns.
    pub sleeping_ns: u64,
    /// Blocked so that no signal wakes, ns.
    pub uninterruptible_ns: u64,
    /// Not known: before the first event of a thread, or where records were lost, ns.
    pub unknown_ns: u64,
    /// Cycles of the time on CPU at a known effective frequency.
    pub cycles: u64,
    /// Time on CPU by cluster and its effective frequency; it adds up to `on_cpu_ns`.
    pub frequencies: Vec<UsageFrequencyRow>,
    /// Wake-ups from idle states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<WakeRow>,
    /// Energy of the CPUs while they ran this, and its share of their clusters'; null without an energy model.
    pub energy: Option<EnergyShareRow>,
}

impl UsageRow {
    /// Returns the mean effective frequency of the time on CPU at a known one, kHz; `None` where there is none.
    #[must_use]
    pub(crate) fn mean_khz(&self) -> Option<u32> {
        let known = self.frequencies.iter().filter_map(|row| Some((row.khz?, row.ns)));
        let (mut cycles, mut time) = (0, 0);
        for (khz, ns) in known {
            cycles += u128::from(khz) * u128::from(ns);
            time += u128::from(ns);
        }
        u32::try_from(cycles.checked_div(time)?).ok()
    }
}

/// Time on CPU at one effective frequency of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageFrequencyRow {
    /// Name of the cluster; null for CPUs that are in none that shares a clock.
    pub cluster: Option<String>,
    /// Frequency, kHz; null where it is not known.
    pub khz: Option<u32>,
    /// Time, ns.
    pub ns: u64,
}

/// Times that a thread was woken and ran on a CPU that had been idle in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeRow {
    /// Name of the CPU's cluster; null for CPUs that are in none that shares a clock.
    pub cluster: Option<String>,
    /// Name of the idle state; null where its depth is not known.
    pub state: Option<String>,
    /// Wake-ups that came while the CPU was idle or after that, where no other traced thread ran on it in between.
    pub count: u64,
    /// Wake-ups of these that came while the CPU was idle: others came once something had ended that, such as a timer.
    pub measured: u64,
    /// Sum of the times from those to the end of the idle state, ns.
    pub latency_ns: u64,
    /// Longest of these times, ns.
    pub max_latency_ns: u64,
    /// Exit latency of the state in the kernel's table, ns; null where it is not known.
    pub exit_latency_ns: Option<u64>,
}

/// Share of the energy, in the unit of `energy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyShareRow {
    /// Energy of the known time.
    pub total: f64,
    /// Energy with unknown time in the cheapest states of the model.
    pub total_min: f64,
    /// Energy with unknown time in the dearest states of the model.
    pub total_max: f64,
}
