//! The snapshot: everything that one run found, as `--json` writes it and every view shows it.
//!
//! Units are in the names (`_ns`, `_khz`). Keys are only ever added within a version; the order of the
//! fields here is the order in the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The value of [`Snapshot::schema`].
pub const SCHEMA: &str = "nntrace-snapshot";
/// The value of [`Snapshot::version`].
pub const VERSION: u32 = 1;

/// What one run found in one window of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// What made this.
    pub tool: Tool,
    /// The machine that was measured.
    pub host: Host,
    /// The time that was measured.
    pub window: Window,
    /// Where the records came from.
    pub source: Source,
    /// The contract's table, one for each `[NN_LA_PO]`.
    pub reports: Vec<ReportRow>,
    /// Time per process, layer and phase.
    pub phases: Vec<PhaseRow>,
    /// Time per process and stack of layers and phases.
    pub stacks: Vec<StackRow>,
    /// Time per process and marked function.
    pub functions: Vec<FunctionRow>,
    /// Time per thread, layer, phase and marked function; only when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<DetailRow>,
    /// Counters that marks set.
    pub counters: Vec<CounterRow>,
    /// Asynchronous slices and instants that marks told.
    pub tracks: Vec<TrackRow>,
    /// What each CPU did.
    pub cpus: Vec<CpuRow>,
    /// What each cluster did.
    pub clusters: Vec<ClusterRow>,
    /// What measuring cost.
    pub overhead: Overhead,
    /// What was lost on the way.
    pub loss: Loss,
    /// What was odd in the input.
    pub diagnostics: Vec<Diagnostic>,
    /// What could not be measured, and what would mend it.
    pub notes: Vec<String>,
}

/// The program that wrote a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The machine that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Machine, as `uname -m` prints it.
    pub machine: String,
    /// How many CPUs were online at the end.
    pub cpus: u32,
}

/// The time that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The clock of every time here; live it is always `monotonic`.
    pub clock: String,
    /// First instant, ns of that clock.
    pub begin_ns: u64,
    /// Last instant, ns of that clock.
    pub end_ns: u64,
}

impl Window {
    /// Its length, ns.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Where the records came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `live` or `replay`.
    pub kind: String,
    /// How marks were seen: `uprobe`, `syscall`, `trace` or `none`.
    pub marks: String,
    /// The files that were read, or the objects that were probed.
    pub files: Vec<String>,
}

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
    /// Their time, ns.
    pub slices_ns: u64,
}

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
    /// At least one CPU running, by the highest requested frequency of those that run.
    pub active: Vec<FrequencyRow>,
    /// All CPUs idle, by the deepest state that they have in common.
    pub idle: Vec<IdleRow>,
    /// How many CPUs ran at once.
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
    /// CPUs known to be running.
    pub running_cpus: u32,
    /// Time, ns.
    pub ns: u64,
}

/// What measuring cost, by the kernel's own BPF statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Runs of the mark programs.
    pub marks: u64,
    /// Time of one, ns, without the cost of the probe itself; null before the first.
    pub ns_per_mark: Option<u64>,
    /// Runs of the power programs.
    pub power_events: u64,
    /// Time of one, ns; null before the first.
    pub ns_per_power_event: Option<u64>,
    /// CPU time of this process, ns.
    pub collector_cpu_ns: u64,
}

/// What was lost between kernel and report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Records that the kernel programs made.
    pub records_produced: u64,
    /// Records that reached user space.
    pub records_drained: u64,
    /// Records that found their ring full.
    pub records_dropped: u64,
    /// Records that came too late to be put in order.
    pub records_late: u64,
    /// Dropped records by CPU; CPUs without loss are left out.
    pub dropped_by_cpu: BTreeMap<u32, u64>,
}

/// One kind of oddity in the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Its name in the contract, `unmatched_end`.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// When first, ns.
    pub first_ns: u64,
    /// Thread of the first.
    pub tid: u32,
    /// Text of the first mark concerned.
    pub example: String,
}
