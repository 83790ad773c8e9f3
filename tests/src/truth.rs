//! Counts and times taken by the programs themselves: the file of the workload's `--truth`, and bounds of sections.

use std::{fs, ops::RangeInclusive, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Contents of the file.
#[derive(Debug, Deserialize)]
pub struct Truth {
    /// The application and its driver.
    pub processes: Vec<Process>,
    /// Marks of all processes.
    pub marks: u64,
    /// Number of classified images.
    pub inferences: u64,
}

/// Counts and times of one process.
#[derive(Debug, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// `application` or `driver`.
    pub role: String,
    /// An entry for each layer and phase that occurred.
    pub phases: Vec<PhaseTotal>,
}

/// Sections of one layer and phase.
#[derive(Debug, Deserialize)]
pub struct PhaseTotal {
    /// Layer code.
    pub layer: String,
    /// Phase code.
    pub phase: String,
    /// Number of sections.
    pub count: u64,
    /// Their total time, ns: the best estimate.
    pub total_ns: u64,
    /// Bounds for readers of the marks.
    #[serde(flatten)]
    pub bounds: Bounds,
}

/// Bounds of the time of marked sections: no clock is read at the very moment of a mark, only before and after it.
/// Other work of the host makes the bounds wider but never wrong.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Bounds {
    /// Least time that a reader of the marks can have seen, ns.
    pub least_ns: u64,
    /// Most time that a reader of the marks can have seen, ns.
    pub most_ns: u64,
}

impl Bounds {
    /// Adds a section: the time between its marks, and the time around them.
    pub fn add(&mut self, inside: Duration, around: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.least_ns += ns(inside);
        self.most_ns += ns(around);
    }

    /// Returns the range of the bounds, ns.
    #[must_use]
    pub fn range(&self) -> RangeInclusive<u64> {
        self.least_ns..=self.most_ns
    }
}

impl Truth {
    /// Reads the file.
    ///
    /// # Errors
    /// When it does not exist, or has another format.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("the workload wrote no {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no truth", path.display()))
    }
}
