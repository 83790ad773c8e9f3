//! Counts of performance events: of the hardware, and of the kernel.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SiteRow;

/// Counts of sections that ended, without those of the sections in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerfCounterTable {
    /// Events that were counted, in the order in which they were asked for.
    pub events: Vec<PerfEventRow>,
    /// Time that reading all events takes at each mark and at each switch from and to a thread, ns, as measured when the run
    /// began; null where it could not be.
    pub ns_per_read: Option<u64>,
    /// Marks at which not all events could be read: on a CPU where one does not count, or where there was no room for the
    /// thread. Counts lack what lies before them.
    pub uncounted_marks: u64,
    /// Sections whose counts found no room in the kernel's table.
    pub uncounted_sections: u64,
    /// By process, layer and phase.
    pub phases: Vec<PhaseCountsRow>,
    /// By function.
    pub functions: Vec<FunctionCountsRow>,
}

/// Event that was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerfEventRow {
    /// Name, as `--counters` takes it.
    pub event: String,
    /// Count of the event during one reading of all events, which counts of sections contain; null where it could not be
    /// measured.
    pub count_per_read: Option<u64>,
}

/// Counts of a layer and phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseCountsRow {
    /// Process id.
    pub pid: u32,
    /// Name of the process; empty if it could not be read.
    pub comm: String,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
    /// Counts.
    #[serde(flatten)]
    pub counts: CountsRow,
}

/// Counts of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCountsRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Counts.
    #[serde(flatten)]
    pub counts: CountsRow,
}

/// Counts of some sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountsRow {
    /// Number of sections.
    pub sections: u64,
    /// Count of each event, in the order of `events`.
    pub counts: Vec<CountRow>,
    /// Instructions per cycle; null without both events.
    pub instructions_per_cycle: Option<f64>,
}

/// Count of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountRow {
    /// Name of the event.
    pub event: String,
    /// Count; where the event had to take turns with others, what it would be for all of the time: `read` x `enabled_ns` /
    /// `running_ns`. Null where it never counted.
    pub count: Option<u64>,
    /// Whether `count` is such an estimate.
    pub is_scaled: bool,
    /// Count that was read.
    pub read: u64,
    /// Time on CPUs in which the event was to count, ns.
    pub enabled_ns: u64,
    /// Time of that in which it did, ns.
    pub running_ns: u64,
}
