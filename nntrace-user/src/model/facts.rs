//! Facts about a run that nothing is inferred from: where and when it was measured, at what cost, and what was lost. They
//! are serialized as they are.

mod evidence;
mod loss;
mod verification;

pub use evidence::{CpuEvidenceRow, Evidence, PowerDomainRow, PsciRow, SuspendRow};
pub use loss::{KeptSums, Loss};
use serde::{Deserialize, Serialize};
pub use verification::{Verify, VerifyRow};

/// A process that appears in the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLabel {
    /// Its name; empty if it could not be read.
    pub comm: String,
}

/// Host that was measured.
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

/// Cost of measuring. How long programs take comes from the kernel's own BPF statistics, which not every user may switch
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
    /// Context switches and wake-ups, of all threads of the host; only when these are asked for.
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
    pub fn percent(&self) -> f64 {
        if self.capacity == 0 { 0.0 } else { 100.0 * self.entries as f64 / self.capacity as f64 }
    }
}
