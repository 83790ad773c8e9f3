//! Results of marks.

use std::fmt;

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    function_details::FunctionDetails,
    histogram::{TimeHistogram, or_empty},
};
use crate::model::{layer_phase_times::TimesByLayer, stacks::StackFrame};

/// The contract's table of one stretch: from one `[NN_LA_PO]` to the next, all processes together. The first one also
/// holds what came before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRow {
    /// Payload of the mark that began it; empty when there was none.
    pub starting_mark: String,
    /// Sections that were still open at the end of the input; they are in no total.
    pub open_sections: u64,
    /// Executions by application phase.
    pub executions: Executions,
    /// Totals by layer and phase, ns; what is 0 is left out. `LT` is the largest of all layers.
    pub total_ns: TimesByLayer,
    /// Totals less those of the next lower layer that has any, ns.
    pub self_ns: TimesByLayer,
    /// Tables of the application's warm-up and benchmark alone.
    pub app_phases: AppPhases,
}

/// Counts of executions by application phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub struct Executions {
    /// Executions outside of warm-up and benchmark.
    pub po: u64,
    /// Executions in the warm-up.
    pub pwu: u64,
    /// Executions in the benchmark.
    pub pbm: u64,
}

/// Times of the application's warm-up and benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppPhases {
    /// Times of the benchmark; missing without one.
    #[serde(rename = "PBM", default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<AppPhaseTimes>,
    /// Times of the warm-up; missing without one.
    #[serde(rename = "PWU", default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<AppPhaseTimes>,
}

/// Times of one application phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppPhaseTimes {
    /// Totals by layer and phase, ns.
    pub total_ns: TimesByLayer,
    /// Totals less those of the next lower layer that has any, ns.
    pub self_ns: TimesByLayer,
}

/// The role of a process in the stack, by its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// It runs the application and the NN runtime.
    Application,
    /// It serves a driver.
    Driver,
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// Time in one layer and phase of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRow {
    /// Process id.
    pub pid: u32,
    /// Name of the process; empty if it could not be read.
    pub comm: String,
    /// Role of the process.
    pub role: ProcessRole,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
    /// Frames that add to the total; detail adds nothing, and is not counted.
    pub count: u64,
    /// Total by the stack rule of the contract, ns.
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
    /// Shortest frame, ns; null when no frame of it was recorded one by one.
    pub min_ns: Option<u64>,
    /// Median of the frames, ns; null without `min_ns`.
    pub p50_ns: Option<u64>,
    /// 90th percentile of the frames, ns; null without `min_ns`.
    pub p90_ns: Option<u64>,
    /// 99th percentile of the frames, ns; null without `min_ns`.
    pub p99_ns: Option<u64>,
    /// Longest frame, ns; null without `min_ns`.
    pub max_ns: Option<u64>,
    /// Times of the frames, ns: an `HdrHistogram` in its encoding V2, not compressed, as base64; empty when no frame was
    /// recorded one by one.
    #[serde(with = "or_empty")]
    #[schemars(with = "TimeHistogram")]
    pub histogram: Option<TimeHistogram>,
}

/// Time in one stack of layers and phases of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRow {
    /// Process id.
    pub pid: u32,
    /// Frames from the outermost in.
    pub path: Vec<StackFrame>,
    /// Frames closed here.
    pub count: u64,
    /// Time that they add to the contract's total, ns (detail adds nothing).
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
}

/// Time in one marked function of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionRow {
    /// Process id.
    pub pid: u32,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
    /// Name from the mark, without its `#key=value` pairs.
    pub name: String,
    /// Frames that were recorded one by one.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
    /// Median of the frames, ns.
    pub p50_ns: u64,
    /// 99th percentile of the frames, ns.
    pub p99_ns: u64,
    /// Longest frame, ns.
    pub max_ns: u64,
    /// Whether earlier sections of it may be in `(others)`: it came after functions had been summed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Details for the live view.
    #[serde(skip)]
    pub details: Option<Box<FunctionDetails>>,
}

impl FunctionRow {
    /// Returns a time of its sections; `None` of a function that occurs only in itself, and has no section that counts.
    #[must_use]
    pub(crate) fn of_sections(&self, ns: u64) -> Option<u64> {
        (self.count > 0).then_some(ns)
    }
}

/// Time in one marked function on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetailRow {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterRow {
    /// Process id.
    pub pid: u32,
    /// Name of the counter.
    pub name: String,
    /// Times that it was set.
    pub count: u64,
    /// Smallest value; null where it was never set to a number.
    pub min: Option<i64>,
    /// Largest value; null where it was never set to a number.
    pub max: Option<i64>,
    /// Last value; null where it was never set to a number.
    pub last: Option<i64>,
}

/// Asynchronous slices and instants of one name in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackRow {
    /// Process id.
    pub pid: u32,
    /// Name of their track; empty when they have none of their own.
    pub track: String,
    /// Name of the slices and instants.
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
