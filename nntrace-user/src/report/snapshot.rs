//! The snapshot: everything that one run found, as `--json` writes it and every view shows it.
//!
//! Units are in the names (`_ns`, `_khz`). Keys are only ever added within a version; the order of the
//! fields here is the order in the file.

mod causality;
mod energy;
mod evidence;
mod loss;
mod marks;
mod power;
mod threads;
mod verify;

use nntrace_common::diagnostic::DiagnosticKind;
use serde::{Deserialize, Serialize};

pub use causality::{
    AccountFunctionRow, AccountRow, CalleeRow, ExplanationRow, GroupRow, HandOverCounts,
    IterationFunctionRow, IterationKey, IterationRow, MissingRow, SiteRow, StatesRow,
};
pub use energy::{ClusterEnergyRow, EnergyPartsRow, EnergyRow, UnpricedRow};
pub use evidence::{CpuEvidenceRow, Evidence, PowerDomainRow, PsciRow, SuspendRow};
pub use loss::{KeptSums, Loss};
pub use marks::{
    AppPhaseTimes, CounterRow, DetailRow, Executions, FunctionRow, PhaseRow, ReportRow, StackRow,
    TimesByLayer, TrackRow,
};
pub use power::{ClusterRow, ConcurrencyRow, CpuRow, EffectiveRow, FrequencyRow, IdleRow, InitialRow};
pub use threads::ThreadRow;
pub use verify::{Verify, VerifyRow};

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

/// What measuring cost. How long programs take is what the kernel's own BPF statistics tell, which not every user may switch
/// on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Marks of the targets.
    pub marks: u64,
    /// Time that the program takes for one, ns, without the cost of the probe itself; null where it is not known.
    pub ns_per_mark: Option<u64>,
    /// Events of idle states and frequencies, and changes by hotplug.
    pub power_events: u64,
    /// Time of one, ns; null where it is not known.
    pub ns_per_power_event: Option<u64>,
    /// Context switches and wake-ups, of all threads of the machine; only when these are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_events: Option<u64>,
    /// Time of one, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_sched_event: Option<u64>,
    /// CPU time of this process, ns.
    pub collector_cpu_ns: u64,
    /// Memory of the tables of marks, bytes; live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_memory_bytes: Option<u64>,
    /// How full these tables are; live only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableUse>,
}

/// How full a table of the kernel programs is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableUse {
    /// Which: `threads`, `totals`, `names` or `paths`.
    pub table: String,
    /// Entries that it holds: of threads, those that have not ended.
    pub entries: u64,
    /// Entries that it can hold.
    pub capacity: u64,
    /// Entries that it had no room for: of threads, the marks of threads without an entry.
    pub turned_away: u64,
}

impl TableUse {
    /// Its filling, percent.
    #[must_use]
    pub(crate) fn percent(&self) -> f64 {
        if self.capacity == 0 { 0.0 } else { 100.0 * self.entries as f64 / self.capacity as f64 }
    }
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
