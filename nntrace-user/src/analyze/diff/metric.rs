//! Figures that runs are compared by: each has one value a run.

use nntrace_common::layer::Tag;
use serde::Serialize;

use crate::report::snapshot::ResultUnit;

/// Figure with its value in every run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metric {
    /// Name in thresholds: `LR_PE.mean`, `LR_PE:function.p99`, `cpu0.idle.C1`, `cluster.big.energy`,
    /// `rail.hwmon/ina226/VDD_CPU.energy`.
    pub(super) name: String,
    /// Part of the system that it is a figure of.
    pub(super) subject: Subject,
    /// Unit of the values.
    pub(super) unit: Unit,
    /// Tests that it takes part in.
    pub(super) family: Family,
    /// Whether it lacks what was lost in a run.
    pub(super) is_incomplete: bool,
    /// Values in the order of the runs; `None` where a run has none.
    pub(super) values: Vec<Option<f64>>,
}

/// Part of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A layer and phase, over all processes.
    Phase(Tag),
    /// A marked function.
    Function,
    /// The states of a CPU or cluster.
    Residency,
    /// The energy by a model of all CPUs, of a cluster, or of a layer and phase.
    Energy,
    /// The measured energy of a power rail.
    Rail,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Number of sections.
    Count,
    /// Share of the window, of 1.
    Share,
    /// Energy in J, by a model or measured.
    #[serde(rename = "J")]
    Joule,
    /// Measured power in W.
    #[serde(rename = "W")]
    Watt,
    /// Energy by a model without a unit.
    Relative,
}

impl From<ResultUnit> for Unit {
    fn from(unit: ResultUnit) -> Self {
        match unit {
            ResultUnit::Joule => Self::Joule,
            ResultUnit::Relative => Self::Relative,
        }
    }
}

impl Unit {
    /// Whether more of it is worse; of the others, more is only different.
    pub(super) const fn is_cost(self) -> bool {
        matches!(self, Self::Ns | Self::Joule | Self::Watt | Self::Relative)
    }
}

/// Tests that are corrected together. Most of the probability of a false alarm is kept for the first family, so that a
/// phase is found however many functions and states there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Family {
    /// Time of one section of a phase, with and without what is nested in it.
    Phases,
    /// Everything else that is judged.
    Others,
    /// Shown, but not judged.
    None,
}

/// Divisor of sums, which makes runs of different length comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Executions of the application, as the reports count them.
    Execution,
    /// Seconds of the window.
    Second,
    /// Nothing: runs did the same work.
    Run,
}
