//! The snapshot: everything that one run found, as `--json` writes it and every view shows it.
//!
//! Units are in the names (`_ns`, `_khz`). Keys are only ever added within a version; the order of the
//! fields here is the order in the file.

mod causality;
mod devices;
mod dispatch_overhead;
mod energy;
mod function_details;
mod hand_overs;
mod histogram;
mod iterations;
mod language_models;
mod marks;
mod perf_counters;
mod power;
mod recent;
mod schema;
mod stack_frame;
mod threads;
mod times_by_layer;
mod unfinished;
mod usage;

use nntrace_common::diagnostic::DiagnosticKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use causality::{
    AccountFunctionRow, AccountRow, CalleeRow, ExplanationRow, GroupRow, HandOverCounts, MissingRow, SiteRow,
    StatesRow,
};
pub use devices::{DeviceProcessRow, DeviceRow, DeviceSectionRow};
pub use dispatch_overhead::{ClusterOverheadRow, DispatchOverheadRow};
pub use energy::{ClusterEnergyRow, EnergyPartsRow, EnergyRow, PhaseEnergyRow, UnpricedRow};
pub use function_details::{FunctionDetails, FunctionThreadRow, SlowCallRow};
pub use hand_overs::{HandOverEvidence, HandOverPair, HandOverPart, HandOverSplit};
pub use histogram::TimeHistogram;
pub use iterations::{IterationFunctionRow, IterationKey, IterationRow, SlowIterationRow};
pub use language_models::{DurationsRow, LanguageModelRow};
pub use marks::{
    AppPhaseTimes, AppPhases, CounterRow, DetailRow, Executions, FunctionRow, PhaseRow, ProcessRole,
    ReportRow, StackRow, TrackRow,
};
pub use perf_counters::{
    CountRow, CountsRow, FunctionCountsRow, PerfCounterTable, PerfEventRow, PhaseCountsRow,
};
pub use power::{ClusterRow, ConcurrencyRow, CpuRow, EffectiveRow, FrequencyRow, IdleRow, InitialRow};
pub use recent::{RecentActivity, RecentThread};
pub(crate) use recent::{RecentSectionRow, RecentState};
pub use threads::ThreadRow;
pub use unfinished::UnfinishedRow;
pub use usage::{
    AccountUsageRow, EnergyShareRow, FunctionUsageRow, IterationUsageRow, PhaseUsageRow, UsageFrequencyRow,
    UsageRow, UsageTable, WakeRow,
};

pub use crate::model::{
    device_clocks::{ClockSource, ClockTime, DeviceClock},
    device_usage::{DeviceUsage, DeviceUser, EngineUser, UsageSource, UsedDevice, UsedEngine},
    energy::ResultUnit,
    initial_state::{FrequencySource, IdleSource},
    layer_phase_times::{TableRow, TimesByLayer},
    rails::{RailKind, RailRow, RailSource, Rails, UnreadableRail},
    run_facts::{
        Clock, CpuEvidenceRow, Evidence, Host, Loss, MarksSeen, Overhead, PowerDomainRow, PsciRow, Source,
        SourceKind, SuspendRow, TableUse, VerifiedFigure, Verify, VerifyRow, Window,
    },
    stacks::{FramePart, StackFrame},
};

/// The value of [`Snapshot::schema`].
pub const SCHEMA: &str = "nntrace-snapshot";
/// The value of [`Snapshot::version`].
pub const VERSION: u32 = 1;

/// The results of one run in one window of time. Times are integers, ns; `khz` are kHz; energies are in the unit that
/// stands beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Name of this format.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Version of this format: within it, keys are only ever added.
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    /// The program that wrote this.
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
    /// Sections that had not ended when the window did, by thread, from the outermost in: where a program hangs. The first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedRow>,
    /// Prompts and tokens of language models, by process; where executions name their tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub language_models: Vec<LanguageModelRow>,
    /// Jobs of accelerators and GPUs by ring; where a trace has their events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceRow>,
    /// Iterations by function, where marks carry them or they were asked for.
    #[serde(default, deserialize_with = "iterations::of_either_form")]
    pub iterations: Vec<IterationRow>,
    /// Exclusive time by the account that it is charged to; only where marks name accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountRow>,
    /// Sections by an attribute; only when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRow>,
    /// Time that no section covers, by function: of iterations; of outermost sections only when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRow>,
    /// Causes of the variance of a function's duration; only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationRow>,
    /// Counts of work that was handed over, if any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_overs: Option<HandOverCounts>,
    /// Hand-overs of work, put together and split; only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over_split: Option<HandOverSplit>,
    /// Idle CPUs while work waited; only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_overhead: Option<DispatchOverheadRow>,
    /// Times that threads ran, waited and slept; live only when it is asked for, else where the trace has context switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadRow>,
    /// Resources that sections used: time on CPU, waits, energy; where there are context switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTable>,
    /// Counts of performance events by section; only with `--counters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perf_counters: Option<PerfCounterTable>,
    /// Counters that marks set.
    pub counters: Vec<CounterRow>,
    /// Asynchronous slices and instants of marks.
    pub tracks: Vec<TrackRow>,
    /// Times of each CPU by what it did.
    pub cpus: Vec<CpuRow>,
    /// Times of each cluster by what it did.
    pub clusters: Vec<ClusterRow>,
    /// Energy of the CPUs and clusters; null without an energy model.
    #[serde(default)]
    pub energy: Option<EnergyRow>,
    /// Measured energy of the host's power rails, beside the model's and never added to it; live, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rails: Option<Rails>,
    /// Time by frequency of devices other than CPUs, as devfreq counts it, or by its events in a trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_clocks: Vec<DeviceClock>,
    /// Use of accelerators and GPUs by process, as their drivers count it; live, where there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_usage: Option<DeviceUsage>,
    /// Evidence of the kernel beside the events that times rest on; live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Our totals against the kernel's; with `--verify`, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Cost of measuring.
    pub overhead: Overhead,
    /// Losses between the kernel and this.
    pub loss: Loss,
    /// What happened lately on each thread, for the live view.
    #[serde(skip)]
    pub recent: Option<Box<RecentActivity>>,
    /// Diagnostics of the input: marks and events that do not fit together.
    pub diagnostics: Vec<Diagnostic>,
    /// Notes for people: what could not be measured, and what would mend it.
    pub notes: Vec<String>,
}

/// The program that wrote a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// Count of one kind of diagnostic, with its first example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Kind of the diagnostic.
    pub kind: DiagnosticKind,
    /// Times that it was met.
    pub count: u64,
    /// Time of the first, ns.
    pub first_ns: u64,
    /// Thread of the first, or its CPU where the diagnostic is about CPUs.
    pub tid: u32,
    /// Text of the first mark concerned.
    pub example: String,
}

impl Diagnostic {
    /// Where it was met first: `in thread 7`, `on CPU 2`; nothing of a line of a file.
    #[must_use]
    pub(crate) fn place(&self) -> Option<String> {
        match self.kind {
            DiagnosticKind::UnreadableLine => None,
            kind if kind.is_of_cpu() => Some(format!("on CPU {}", self.tid)),
            // Of no thread.
            _ if self.tid == 0 => None,
            _ => Some(format!("in thread {}", self.tid)),
        }
    }
}
