//! Facts about a run that nothing is inferred from: where and when it was measured, at what cost, and what was lost. They
//! are serialized as they are.

mod loss;
mod other_power_events;
mod verification;

use std::fmt;

pub(crate) use loss::KeptSums;
pub use loss::Loss;
pub use other_power_events::{CpuEvidenceRow, Evidence, PowerDomainRow, PsciRow, SuspendRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use verification::{VerifiedFigure, Verify, VerifyRow};

/// A process that appears in the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessLabel {
    /// Its name; empty if it could not be read.
    pub comm: String,
}

/// The host that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Machine, as `uname -m` prints it.
    pub machine: String,
    /// CPUs that were online at the end.
    pub cpus: u32,
}

/// A clock that times are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, always live.
    #[default]
    Monotonic,
    /// The clock of the trace that was replayed, whichever that is.
    Trace,
}

/// The time that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Clock of every time here.
    pub clock: Clock,
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

/// The kind of run that records came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// The running kernel.
    Live,
    /// Files of traces.
    Replay,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// The way in which marks were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MarksSeen {
    /// Probes on the functions that write them.
    Uprobe,
    /// System calls that write them to `trace_marker`.
    Syscall,
    /// Trace that was replayed.
    Trace,
    /// Not at all: marks were not traced.
    None,
}

/// Where the records came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Kind of the run.
    pub kind: SourceKind,
    /// Way in which marks were seen.
    pub marks: MarksSeen,
    /// Files that were read, or objects that were probed.
    pub files: Vec<String>,
    /// Engines whose functions were probed; live only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<ProbedEngine>,
    /// Use of the express lane; only where threads used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub express: Option<ExpressUse>,
}

/// Use of the express lane: rings that threads write their marks to instead of calling the probed function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpressUse {
    /// Threads that used it.
    pub threads: u64,
    /// Marks that came by it.
    pub marks: u64,
    /// Marks of these threads that took the probe after all, as a ring was full or for other reasons.
    pub probed: u64,
    /// Marks of these threads that are lost. Sections that were open then are not counted.
    pub lost: u64,
    /// Rings that were damaged: what was in them is lost.
    pub damaged: u64,
}

impl ExpressUse {
    /// Whether every mark of the threads is in the totals.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.lost == 0 && self.damaged == 0
    }
}

/// Engine whose functions were probed, in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedEngine {
    /// Name, as `--engine` takes it.
    pub engine: String,
    /// The engine in a few words.
    pub about: String,
    /// Version; null where it is not known.
    pub version: Option<String>,
    /// Path of the file, in the target's view.
    pub file: String,
    /// Number of functions that are probed.
    pub functions: usize,
    /// Number of functions that are hooked in the processes of a command instead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hooked: usize,
}

/// Whether a number is 0, which snapshots leave out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Cost of measuring. How long programs take is known from the kernel's own BPF statistics, which not every user may switch
/// on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Marks of the targets.
    pub marks: u64,
    /// Time that the program takes for one, ns, without the cost of the probe itself; null where it is not known.
    pub ns_per_mark: Option<u64>,
    /// Calls of engines' functions that were probed; only where there are any. They are among the marks, twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_calls: Option<u64>,
    /// Time by which the probes make such a call longer, as measured on this machine when the first one was attached, ns;
    /// missing where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_engine_call: Option<u64>,
    /// Events of idle states and frequencies, and changes by hotplug.
    pub power_events: u64,
    /// Time that the program takes for one, ns; null where it is not known.
    pub ns_per_power_event: Option<u64>,
    /// Context switches and wake-ups, of all threads of the host; only when these are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_events: Option<u64>,
    /// Time that the program takes for one, ns; missing where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_sched_event: Option<u64>,
    /// CPU time of the profiler's own process, ns.
    pub collector_cpu_ns: u64,
    /// Memory of the tables of marks, bytes; live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_memory_bytes: Option<u64>,
    /// Use of these tables; live only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableUse>,
}

/// Use of a table of the kernel programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableUse {
    /// Name of the table: `threads`, `totals`, `names` or `paths`.
    pub table: String,
    /// Entries that it holds: of threads, those that have not ended.
    pub entries: u64,
    /// Entries that it can hold.
    pub capacity: u64,
    /// Entries that it had no room for: of threads, the marks of threads without an entry.
    pub turned_away: u64,
}

impl TableUse {
    /// Share of its entries that are in use, percent.
    #[must_use]
    pub(crate) fn percent(&self) -> f64 {
        if self.capacity == 0 { 0.0 } else { 100.0 * self.entries as f64 / self.capacity as f64 }
    }
}
