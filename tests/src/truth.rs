//! What programs counted and timed themselves: the file of the workload's `--truth`, and bounds of sections.

use std::{fs, ops::RangeInclusive, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Deserialize)]
pub struct Truth {
    /// The application and its driver.
    pub processes: Vec<Process>,
    /// Marks of all processes.
    pub marks: u64,
    /// How many images were classified.
    pub inferences: u64,
}

/// One process.
#[derive(Debug, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// `application` or `driver`.
    pub role: String,
    /// An entry for each layer and phase that occurred.
    pub phases: Vec<PhaseTotal>,
}

/// The sections of one layer and phase.
#[derive(Debug, Deserialize)]
pub struct PhaseTotal {
    /// Layer code.
    pub layer: String,
    /// Phase code.
    pub phase: String,
    /// How many.
    pub count: u64,
    /// Their time, ns: the best estimate.
    pub total_ns: u64,
    /// What the readers of the marks can have seen.
    #[serde(flatten)]
    pub bounds: Bounds,
}

/// Between these is the time of marked sections: no clock is read at the very moment of a mark, only before and behind
/// it. What the machine does meanwhile makes the bounds wider and never wrong.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Bounds {
    /// Nobody who reads the marks can have seen less than this, ns,
    pub least_ns: u64,
    /// nor more than this, ns.
    pub most_ns: u64,
}

impl Bounds {
    /// Adds a section: the time between its marks, and the time around them.
    pub fn add(&mut self, inside: Duration, around: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.least_ns += ns(inside);
        self.most_ns += ns(around);
    }

    /// From the least to the most, ns.
    #[must_use]
    pub fn range(&self) -> RangeInclusive<u64> {
        self.least_ns..=self.most_ns
    }
}

impl Truth {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is not there, or is something else.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("the workload wrote no {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no truth", path.display()))
    }
}
