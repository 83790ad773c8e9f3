//! Our totals beside the kernel's.

use serde::{Deserialize, Serialize};

/// Our totals against the kernel's own over the same window; only when it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// Whether every row passes.
    pub passes: bool,
    /// Every figure that both have.
    pub rows: Vec<VerifyRow>,
    /// Figures that could not be compared, and why.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifyRow {
    /// `idle_ns` and `idle_usage` of a CPU and idle state; `frequency_ns` of a policy and frequency, whatever its CPUs do.
    pub what: String,
    /// The CPU, or the first CPU of the policy.
    pub cpu: u32,
    /// The idle state, or the frequency in kHz.
    pub state: u32,
    /// Ours.
    pub ours: u64,
    /// The kernel's.
    pub kernel: u64,
    /// Difference that is granted; null when they are not compared.
    pub tolerance: Option<u64>,
    /// Whether they are no more apart than that.
    pub passes: bool,
    /// Reason for the tolerance.
    pub why: String,
}
