//! Whether threads ran, waited for a CPU, or slept.

use serde::{Deserialize, Serialize};

/// One thread. The five times add up to the part of the window that it lived in; of one whose begin was not seen, from the
/// begin of the window on. An id that was used again has a row for each thread that had it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Process; the thread's own id where nothing told it.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread's name where it is known, else the process's.
    pub comm: String,
    /// It ran, ns.
    pub on_cpu_ns: u64,
    /// It waited for a CPU, ns.
    pub runnable_ns: u64,
    /// It waited for something that signals interrupt, or was stopped, ns.
    pub sleeping_ns: u64,
    /// It waited for something that signals do not interrupt, ns.
    pub uninterruptible_ns: u64,
    /// Not known: before its first event, or where records were lost, ns.
    pub unknown_ns: u64,
}
