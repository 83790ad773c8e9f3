//! Counters of the kernel about power, beside the events that residency is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Evidence beside the inference: nothing of it is part of the times of CPUs and clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Tracepoints that this kernel has of those that are asked for. Evidence of the others is not known.
    pub sources: Vec<String>,
    /// Evidence of each CPU.
    pub cpus: Vec<CpuEvidenceRow>,
    /// Power domains (`pm_genpd`) that did anything in the window; none where debugfs does not show them.
    pub power_domains: Vec<PowerDomainRow>,
    /// Suspends of the host; null where the kernel does not count them.
    pub suspends: Option<SuspendRow>,
}

/// Evidence of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuEvidenceRow {
    /// CPU number.
    pub cpu: u32,
    /// States that firmware was asked for, by raw parameter.
    pub psci: Vec<PsciRow>,
    /// Sleeps that were too short for their state, by the kernel's own verdict; null where it does not count them.
    pub above: Option<u64>,
    /// Sleeps that were long enough for the next deeper state; null where it does not count them.
    pub below: Option<u64>,
    /// Last lower limit of the frequency in the window, kHz; null when none was set.
    pub min_khz: Option<u32>,
    /// Last upper limit of the frequency in the window, kHz; null when none was set.
    pub max_khz: Option<u32>,
}

/// A state that firmware was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PsciRow {
    /// Raw parameter of PSCI `CPU_SUSPEND`: the device tree's `arm,psci-suspend-param`.
    pub parameter: u32,
    /// Time, ns.
    pub ns: u64,
    /// Times that it happened.
    pub count: u64,
}

/// One state of a power domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerDomainRow {
    /// Name of the domain.
    pub domain: String,
    /// Name of the state, as the kernel calls it.
    pub state: String,
    /// Time, ns; the kernel tells whole milliseconds.
    pub ns: u64,
    /// Times that it was entered.
    pub usage: u64,
    /// Times that it was refused.
    pub rejected: u64,
}

/// Suspends of the host. The monotonic clock, and so the window, stands still meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuspendRow {
    /// Time, ns.
    pub ns: u64,
    /// Times that it happened.
    pub count: u64,
}
