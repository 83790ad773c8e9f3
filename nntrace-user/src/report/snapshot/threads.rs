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
