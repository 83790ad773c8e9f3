//! Losses, and the figures that they leave incomplete.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Losses between kernel and report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Records that the kernel programs made.
    pub records_produced: u64,
    /// Records that reached user space.
    pub records_drained: u64,
    /// Records that found their ring full.
    pub records_dropped: u64,
    /// Whether more may have been dropped: not every loss has a number.
    #[serde(default)]
    pub at_least: bool,
    /// Records that came too late to be put in order.
    pub records_late: u64,
    /// Records that reached user space and could not be read: only programs of another version write such.
    #[serde(default)]
    pub records_unreadable: u64,
    /// Dropped records by CPU number, as far as the CPU is known; CPUs without loss are left out.
    pub dropped_by_cpu: BTreeMap<u32, u64>,
    /// Rows that were summed as `(others)`, left out or forgotten for want of room (`--memory`), by table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub summed: BTreeMap<String, u64>,
    /// Keys of the snapshot, with a dot before those of their rows, whose figures lack what was lost. All others are
    /// exact.
    #[serde(default)]
    pub incomplete: Vec<String>,
}

/// Sums that are kept apart from records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSums {
    /// Residency of CPUs.
    pub cpus: bool,
    /// Time and count of every layer and phase, and of every stack.
    pub totals: bool,
    /// The reports.
    pub reports: bool,
}

/// Figures that rest on single records, wherever these come from.
const ON_RECORDS: [&str; 31] = [
    "accounts",
    "clusters",
    "counters",
    "cpus.effective",
    "cpus.idle.early",
    "cpus.idle.late",
    "cpus.idle.p50_ns",
    "cpus.idle.p90_ns",
    "cpus.idle.p99_ns",
    "cpus.idle.whole_stays",
    "details",
    "device_clocks",
    "devices",
    "diagnostics.wait_missing",
    "energy",
    "explanation",
    "functions",
    "groups",
    "hand_overs",
    "iterations",
    "language_models",
    "missing",
    "phases.histogram",
    "phases.max_ns",
    "phases.min_ns",
    "phases.p50_ns",
    "phases.p90_ns",
    "phases.p99_ns",
    "threads",
    "tracks",
    "usage",
];

impl Loss {
    /// Adds which figures are incomplete, where `kept` are those that do not rest on records.
    #[must_use]
    pub(crate) fn with_incomplete(mut self, kept: KeptSums) -> Self {
        let mut incomplete: Vec<&str> = Vec::new();
        if self.records_dropped > 0 || self.records_unreadable > 0 {
            incomplete.extend(ON_RECORDS);
            incomplete.extend((!kept.cpus).then_some("cpus"));
            incomplete.extend((!kept.reports).then_some("reports"));
        }
        if !kept.totals {
            incomplete.extend(["language_models", "phases", "reports", "stacks"]);
        }
        incomplete.sort_unstable();
        incomplete.dedup();
        self.incomplete = incomplete.into_iter().map(Into::into).collect();
        self
    }

    /// Whether the figures under a key are incomplete.
    #[must_use]
    pub fn makes_incomplete(&self, key: &str) -> bool {
        let mut known = self.incomplete.iter();
        known.any(|incomplete| {
            key.strip_prefix(incomplete.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_KEPT: KeptSums = KeptSums { cpus: true, totals: true, reports: true };

    #[test]
    fn nothing_is_incomplete_without_a_loss() {
        let loss = Loss { records_produced: 7, records_drained: 7, ..Loss::default() };
        assert!(loss.with_incomplete(ALL_KEPT).incomplete.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_missing_as_well() {
        let loss = Loss { records_unreadable: 1, ..Loss::default() }.with_incomplete(ALL_KEPT);
        assert!(loss.makes_incomplete("tracks"));
    }

    #[test]
    fn a_loss_leaves_what_the_kernel_keeps() {
        let lossy = Loss { records_dropped: 1, ..Loss::default() };
        let live = lossy.clone().with_incomplete(ALL_KEPT);
        for exact in ["phases", "phases.total_ns", "stacks", "reports", "cpus.idle.ns", "cpus.running"] {
            assert!(!live.makes_incomplete(exact), "{exact}");
        }
        for incomplete in ["functions", "functions.count", "phases.p99_ns", "cpus.effective", "clusters.idle"]
        {
            assert!(live.makes_incomplete(incomplete), "{incomplete}");
        }
        let replay = lossy.with_incomplete(KeptSums::default());
        assert!(
            ["phases.total_ns", "stacks", "reports", "cpus.idle.ns"].map(|key| replay.makes_incomplete(key))
                == [true; 4]
        );
        assert!(replay.incomplete.is_sorted());
    }

    #[test]
    fn full_tables_leave_the_totals_incomplete_though_no_record_was_lost() {
        let loss = Loss::default().with_incomplete(KeptSums { totals: false, ..ALL_KEPT });
        assert_eq!(loss.incomplete, ["language_models", "phases", "reports", "stacks"]);
    }
}
