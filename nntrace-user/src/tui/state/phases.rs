//! The phases view: its rows in order, and how they are sorted.

use nntrace_common::layer::{Layer, Phase};

use super::Sample;
use super::table::{Column, Table};
use crate::report::snapshot::{PhaseRow, Snapshot, StackRow};

/// Identity of a row from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseKey {
    /// Process.
    pub pid: u32,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
}

impl PhaseKey {
    fn of(row: &PhaseRow) -> Self {
        Self { pid: row.pid, layer: row.layer, phase: row.phase }
    }

    /// Returns the innermost layer and phase of a stack; `None` if all its frames are untagged.
    pub(super) fn of_stack(row: &StackRow) -> Option<Self> {
        let tag = row.path.iter().rev().find_map(|frame| frame.tag)?;
        Some(Self { pid: row.pid, layer: tag.layer(), phase: tag.phase() })
    }
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseSort {
    /// Exclusive time.
    Exclusive,
    /// Total time.
    Total,
    /// Number of frames.
    Count,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Longest.
    Max,
    /// The order of the snapshot: layer, then phase.
    Name,
}

impl Column for PhaseSort {
    const ALL: &'static [Self] =
        &[Self::Exclusive, Self::Total, Self::Count, Self::P50, Self::P99, Self::Max, Self::Name];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        let row = &sample.snapshot.phases[row];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Total => Some(row.total_ns),
            Self::Count => Some(row.count),
            Self::P50 => row.p50_ns,
            Self::P99 => row.p99_ns,
            Self::Max => row.max_ns,
            Self::Name => None,
        }
    }
}

/// The state of the phases view. Rows of one process stand together.
pub(crate) type Phases = Table<PhaseKey, PhaseSort>;

impl Phases {
    /// Takes over a new snapshot, or a new order.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.phases;
        let mut processes = Vec::new();
        for row in rows {
            if !processes.contains(&row.pid) {
                processes.push(row.pid);
            }
        }
        self.arrange(sample, 0..rows.len());
        self.order.sort_by_key(|&row| processes.iter().position(|&pid| pid == rows[row].pid));
        self.identify(|row| PhaseKey::of(&rows[row]));
    }

    /// The selected row.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a PhaseRow> {
        snapshot.phases.get(self.selected()?)
    }
}
