//! Iterations by function, and the slowest of them.

mod one_by_one;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::histogram::Times;

use super::{SiteRow, TimeHistogram, histogram::or_empty};

pub(super) use one_by_one::of_either_form;

/// The iterations of one function: of its sections that carry a number, or are numbered because it was asked for. What has
/// not ended is in no count, sum or extreme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationRow {
    /// Process id.
    pub pid: u32,
    /// Name of the function.
    pub name: String,
    /// Iterations that have ended.
    pub count: u64,
    /// Iterations that have not.
    pub open: u64,
    /// Sum of their durations, ns: of one, that of the sections that are it.
    pub total_ns: u64,
    /// Mean duration, ns, rounded down; null when none has ended.
    pub mean_ns: Option<u64>,
    /// Shortest duration, ns, exact; null when none has ended.
    pub min_ns: Option<u64>,
    /// Median of the durations, ns, as all percentiles of two significant digits; null when none has ended.
    pub p50_ns: Option<u64>,
    /// 90th percentile of the durations, ns; null when none has ended.
    pub p90_ns: Option<u64>,
    /// 99th percentile of the durations, ns; null when none has ended.
    pub p99_ns: Option<u64>,
    /// Longest duration, ns, exact; null when none has ended.
    pub max_ns: Option<u64>,
    /// Durations without the marked sections in them, on the same thread, ns.
    pub exclusive_ns: u64,
    /// Times from the first begin to the last end of what was done in each, on any thread, summed, ns.
    pub wall_ns: u64,
    /// Time that no section covers, on any thread, ns.
    pub missing_ns: u64,
    /// Durations, ns: an `HdrHistogram` in its encoding V2, not compressed, as base64; empty when none has ended.
    #[serde(with = "or_empty")]
    #[schemars(with = "TimeHistogram")]
    pub histogram: Option<TimeHistogram>,
    /// Functions that ran in them, on any thread.
    pub functions: Vec<IterationFunctionRow>,
    /// The slowest, by wall time; 20 unless another number was asked for.
    pub slowest: Vec<SlowIterationRow>,
}

impl IterationRow {
    /// A row of a function without any iteration.
    #[must_use]
    pub(crate) const fn empty(pid: u32, name: String) -> Self {
        Self {
            pid,
            name,
            count: 0,
            open: 0,
            total_ns: 0,
            mean_ns: None,
            min_ns: None,
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: None,
            exclusive_ns: 0,
            wall_ns: 0,
            missing_ns: 0,
            histogram: None,
            functions: Vec::new(),
            slowest: Vec::new(),
        }
    }

    /// The row with figures of durations: of iterations that have ended, how many have not, the sum, the shortest and the
    /// longest, ns, and all of them.
    #[must_use]
    pub(crate) fn with_durations(
        self,
        count: u64,
        open: u64,
        total_ns: u64,
        extremes: Option<(u64, u64)>,
        times: Times,
    ) -> Self {
        let times = (count > 0).then(|| times.into_histogram());
        // A bucket of the histogram may reach beyond what was measured.
        let quantile = |q: f64| {
            let at = times.as_ref().map(|times| times.value_at_quantile(q));
            at.zip(extremes).map(|(ns, (least, most))| ns.clamp(least, most))
        };
        Self {
            count,
            open,
            total_ns,
            mean_ns: total_ns.checked_div(count),
            min_ns: extremes.map(|(least, _)| least),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            max_ns: extremes.map(|(_, most)| most),
            histogram: times.map(TimeHistogram::from),
            ..self
        }
    }
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowIterationRow {
    /// Number of the iteration.
    pub iter: u64,
    /// Iteration that this one is part of; null for an outermost one.
    pub parent: Option<IterationKey>,
    /// Sections that are this iteration.
    pub count: u64,
    /// Durations of these sections, ns.
    pub total_ns: u64,
    /// Durations without the marked sections in them, on the same thread, ns.
    pub exclusive_ns: u64,
    /// Time from the first begin to the last end of what was done in it, on any thread, ns.
    pub wall_ns: u64,
    /// Time that no section covers, on any thread, ns.
    pub missing_ns: u64,
    /// Functions that ran in it, on any thread.
    pub functions: Vec<IterationFunctionRow>,
}

/// Key of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationKey {
    /// Name of the function.
    pub name: String,
    /// Number of the iteration.
    pub iter: u64,
}

/// Sums over the sections of a function in one iteration, or in all of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationFunctionRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Sections.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Durations without the marked sections in them, ns.
    pub exclusive_ns: u64,
    /// Time from the first begin to the last end in an iteration, ns; of several iterations, the sum.
    pub wall_ns: u64,
}
