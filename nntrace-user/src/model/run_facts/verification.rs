//! Our totals beside the kernel's.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Our totals against the kernel's own over the same window; only when it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verify {
    /// Whether every row passes.
    pub passes: bool,
    /// Every figure that both have.
    pub rows: Vec<VerifyRow>,
    /// Figures that could not be compared.
    pub notes: Vec<String>,
}

/// A figure that both we and the kernel have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedFigure {
    /// Time of a CPU in an idle state, ns.
    #[serde(rename = "idle_ns")]
    IdleTime,
    /// Entries of a CPU into an idle state.
    IdleUsage,
    /// Time of a policy at a frequency, whatever its CPUs do, ns.
    #[serde(rename = "frequency_ns")]
    FrequencyTime,
}

impl VerifiedFigure {
    /// Whether it is a time, ns.
    #[must_use]
    pub(crate) const fn is_time(self) -> bool {
        matches!(self, Self::IdleTime | Self::FrequencyTime)
    }
}

impl fmt::Display for VerifiedFigure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// One figure of ours beside the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyRow {
    /// Figure that is compared.
    pub what: VerifiedFigure,
    /// CPU number; of a policy, its first CPU.
    pub cpu: u32,
    /// Number of the idle state, or the frequency in kHz.
    pub state: u32,
    /// Our value: ns, or a count.
    pub ours: u64,
    /// The kernel's value: ns, or a count.
    pub kernel: u64,
    /// Difference that is granted; null when they are not compared.
    pub tolerance: Option<u64>,
    /// Whether they differ by no more than that.
    pub passes: bool,
    /// Reason for the tolerance.
    pub why: String,
}
