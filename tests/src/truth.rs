//! What the workload counted and timed itself: the file of its `--truth`.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde::Deserialize;

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
    /// Nobody who reads the marks can have seen less than this,
    pub least_ns: u64,
    /// nor more than this.
    pub most_ns: u64,
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
