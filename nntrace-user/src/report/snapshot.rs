//! The snapshot: everything that one run found, as `--json` writes it and every view shows it.
//!
//! Units are in the names (`_ns`, `_khz`). Keys are only ever added within a version; the order of the
//! fields here is the order in the file.

mod causality;
mod energy;
mod marks;
mod power;
mod threads;

use nntrace_common::diagnostic::DiagnosticKind;
use serde::{Deserialize, Serialize};

pub use causality::{
    AccountFunctionRow, AccountRow, CalleeRow, ExplanationRow, GroupRow, HandOverCounts,
    IterationFunctionRow, IterationKey, IterationRow, MissingRow, SiteRow, StatesRow,
};
pub use energy::{ClusterEnergyRow, EnergyPartsRow, EnergyRow, UnpricedRow};
pub use marks::{
    AppPhaseTimes, CounterRow, DetailRow, Executions, FunctionRow, PhaseRow, ReportRow, StackRow,
    TimesByLayer, TrackRow,
};
pub use power::{ClusterRow, ConcurrencyRow, CpuRow, EffectiveRow, FrequencyRow, IdleRow, InitialRow};
pub use threads::ThreadRow;

pub use crate::model::facts::{
    CpuEvidenceRow, Evidence, Host, Loss, Overhead, PowerDomainRow, PsciRow, Source, SuspendRow, TableUse,
    Verify, VerifyRow, Window,
};

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
    /// Iterations, where marks carry them or they were asked for.
    #[serde(default)]
    pub iterations: Vec<IterationRow>,
    /// What is charged to whom, where marks say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountRow>,
    /// Sections by an attribute; only when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRow>,
    /// What no section covers, of iterations; of outermost sections only when it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRow>,
    /// Why a function takes now more, now less time; only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationRow>,
    /// How much work was handed over, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_overs: Option<HandOverCounts>,
    /// Whether threads ran, waited or slept; live only when it is asked for, else where the trace has context switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadRow>,
    /// Counters that marks set.
    pub counters: Vec<CounterRow>,
    /// Asynchronous slices and instants that marks told.
    pub tracks: Vec<TrackRow>,
    /// What each CPU did.
    pub cpus: Vec<CpuRow>,
    /// What each cluster did.
    pub clusters: Vec<ClusterRow>,
    /// What all that cost; null without an energy model.
    #[serde(default)]
    pub energy: Option<EnergyRow>,
    /// What the kernel told beside; live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Our totals against the kernel's; with `--verify`, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
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

/// One kind of diagnostic in the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Its name in the contract, `unmatched_end`.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// When first, ns.
    pub first_ns: u64,
    /// Thread of the first; of what is about CPUs, the CPU.
    pub tid: u32,
    /// Text of the first mark concerned.
    pub example: String,
}

impl Diagnostic {
    /// Where it was met first: `in thread 7`, `on CPU 2`; nothing of a line of a file.
    #[must_use]
    pub(crate) fn place(&self) -> Option<String> {
        let kind = DiagnosticKind::ALL.into_iter().find(|kind| kind.name() == self.kind);
        match kind {
            Some(DiagnosticKind::UnreadableLine) => None,
            Some(kind) if kind.is_of_cpu() => Some(format!("on CPU {}", self.tid)),
            _ => Some(format!("in thread {}", self.tid)),
        }
    }
}
