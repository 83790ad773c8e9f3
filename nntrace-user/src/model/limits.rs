//! How many rows each table of the model may have: parts of one bound on memory.

use serde::{Deserialize, Serialize};

/// The most rows of each kind. Beyond, the smallest are summed as `(others)`, the oldest forgotten, or the new ones left
/// out, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Functions of processes, each with the distribution of its times.
    pub(crate) functions: usize,
    /// Places of sections: thread, stack and function.
    pub(crate) sites: usize,
    /// Layers and phases of processes, each with the distribution of its times.
    pub(crate) phases: usize,
    /// Texts of names.
    pub(crate) names: usize,
    /// Counters, and as many names of instants and asynchronous slices.
    pub(crate) tracks: usize,
    /// Asynchronous slices that have not ended, and executions that nobody has waited for.
    pub(crate) open_slices: usize,
    /// Hand-overs that nobody has taken yet.
    pub(crate) hand_overs: usize,
    /// Threads whose stack is known.
    pub(crate) threads: usize,
    /// Names of processes.
    pub(crate) processes: usize,
    /// Rows of each table of causes: accounts, groups, roots, callees.
    pub(crate) causes: usize,
    /// Iterations, one by one.
    pub(crate) iterations: usize,
    /// Sections, one by one.
    pub(crate) sections: usize,
}

impl Limits {
    /// The default bound on memory where nobody knows the machine, bytes.
    pub const DEFAULT: u64 = 256 << 20;
    /// The smallest bound that is of use, bytes.
    pub const SMALLEST: u64 = 8 << 20;

    /// Limits by which all tables together stay below `bytes` of memory.
    #[must_use]
    pub fn of_memory(bytes: u64) -> Self {
        // Thousandths of the memory, and bytes that a row takes at most, or in practice where a distribution grows with
        // the range of its values.
        let rows =
            |share: u64, size: u64| usize::try_from(bytes / 1_000 * share / size).unwrap_or(usize::MAX);
        Self {
            functions: rows(200, 8_192),
            sites: rows(80, 256),
            phases: rows(100, 32_768),
            names: rows(80, 384),
            tracks: rows(60, 384),
            open_slices: rows(40, 192),
            hand_overs: rows(40, 192),
            threads: rows(100, 8_192),
            processes: rows(20, 192),
            causes: rows(60, 768),
            iterations: rows(100, 2_048),
            sections: rows(120, 160),
        }
    }

    /// The default bound on a machine with so much memory, bytes: a sixteenth, within reason.
    #[must_use]
    pub fn default_memory(machine: u64) -> u64 {
        (machine / 16).clamp(32 << 20, 512 << 20)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of_memory(Self::DEFAULT)
    }
}
