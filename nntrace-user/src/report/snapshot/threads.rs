//! Times that threads ran, waited for a CPU, and slept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thread. The five times add up to the part of the window that it lived in; of one whose begin was not seen, from the
/// begin of the window on. An id that was used again has a row for each thread that had it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRow {
    /// Process id; the thread's own id where the process is not known.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread where it is known, else of the process.
    pub comm: String,
    /// Running, ns.
    pub on_cpu_ns: u64,
    /// Waiting for a CPU, ns.
    pub runnable_ns: u64,
    /// Asleep so that signals wake it, or stopped, ns.
    pub sleeping_ns: u64,
    /// Asleep so that no signal wakes it, ns.
    pub uninterruptible_ns: u64,
    /// Not known: before its first event, or where records were lost, ns.
    pub unknown_ns: u64,
}

impl ThreadRow {
    /// Returns the part of the window that it lived in, ns.
    #[must_use]
    pub(crate) const fn lived_ns(&self) -> u64 {
        let awake = self.on_cpu_ns.saturating_add(self.runnable_ns);
        awake.saturating_add(self.asleep_ns()).saturating_add(self.unknown_ns)
    }

    /// Returns the time asleep, ns.
    #[must_use]
    pub(crate) const fn asleep_ns(&self) -> u64 {
        self.sleeping_ns.saturating_add(self.uninterruptible_ns)
    }
}
