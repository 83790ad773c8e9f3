//! What the marks told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The contract's table of one stretch: from one `[NN_LA_PO]` to the next, all processes together. The first one also
/// holds what came before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportRow {
    /// The payload of the mark that began it; empty when there was none.
    pub starting_mark: String,
    /// Sections that were still open at the end of the input; they are in no total.
    pub open_sections: u64,
    /// How many executions, by application phase.
    pub executions: Executions,
    /// Totals by layer and phase, ns; what is 0 is left out. `LT` is the largest of all layers.
    pub total_ns: TimesByLayer,
    /// Totals less those of the next lower layer that has any, ns.
    pub self_ns: TimesByLayer,
    /// The same for `PWU` and `PBM`, where there was any.
    pub app_phases: BTreeMap<String, AppPhaseTimes>,
}

/// Time by layer code, then by phase code, ns.
pub type TimesByLayer = BTreeMap<String, BTreeMap<String, i64>>;

/// How many executions there were, by application phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub struct Executions {
    /// Outside of warm-up and benchmark.
    pub po: u64,
    /// In the warm-up.
    pub pwu: u64,
    /// In the benchmark.
    pub pbm: u64,
}

/// Times of one application phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppPhaseTimes {
    /// Totals by layer and phase, ns.
    pub total_ns: TimesByLayer,
    /// Totals less those of the next lower layer that has any, ns.
    pub self_ns: TimesByLayer,
}

/// Time in one layer and phase of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRow {
    /// Process id.
    pub pid: u32,
    /// Name of the process; empty if it could not be read.
    pub comm: String,
    /// `application` or `driver`.
    pub role: String,
    /// Layer code, `LR`.
    pub layer: String,
    /// Phase code, `PE`.
    pub phase: String,
    /// Frames that add to the total.
    pub count: u64,
    /// Total by the contract, ns.
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
    /// Shortest frame, ns; null when no frame of it was recorded one by one.
    pub min_ns: Option<u64>,
    /// Median, ns.
    pub p50_ns: Option<u64>,
    /// 90th percentile, ns.
    pub p90_ns: Option<u64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<u64>,
    /// Longest frame, ns.
    pub max_ns: Option<u64>,
    /// The frames' times, as an `HdrHistogram` V2 in base64; empty when there are none.
    pub histogram: String,
}

/// Time in one stack of layers and phases of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackRow {
    /// Process id.
    pub pid: u32,
    /// Tags from the outermost frame in; a subtracted frame's ends in `!`.
    pub path: Vec<String>,
    /// Frames closed here.
    pub count: u64,
    /// What they add to the contract's total, ns (detail adds nothing).
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
}

/// Time in one marked function of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionRow {
    /// Process id.
    pub pid: u32,
    /// Layer code.
    pub layer: String,
    /// Phase code.
    pub phase: String,
    /// Name from the mark, without its `#key=value` pairs.
    pub name: String,
    /// Frames that were recorded one by one.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Whether earlier sections of it may be in `(others)`: it came after functions had been summed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// Time in one marked function on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetailRow {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Layer code.
    pub layer: String,
    /// Phase code.
    pub phase: String,
    /// Name from the mark.
    pub name: String,
    /// Whether its time is in the total of the layer and phase; that of a detail is not.
    pub adds: bool,
    /// Sections.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u64,
    /// Duration without nested marked sections, ns.
    pub exclusive_ns: u64,
}

/// A counter of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterRow {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// How often it was set.
    pub count: u64,
    /// Smallest value.
    pub min: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// Last value.
    pub last: Option<i64>,
}

/// Asynchronous slices and instants of one name in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackRow {
    /// Process id.
    pub pid: u32,
    /// Their track; empty when they have none of their own.
    pub track: String,
    /// Their name.
    pub name: String,
    /// Instants.
    pub instants: u64,
    /// Slices that ended.
    pub slices: u64,
    /// Slices that have not ended.
    #[serde(default)]
    pub open: u64,
    /// Time of those that ended, ns.
    pub slices_ns: u64,
}
