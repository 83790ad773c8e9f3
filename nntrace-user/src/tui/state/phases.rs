//! The phases view: its rows in order, and how they are sorted.

use nntrace_common::layer::{Layer, Phase};

use super::list::List;
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

/// The columns that rows can be sorted by, in the order in which the key goes through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PhaseSort {
    /// Exclusive time.
    #[default]
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

impl PhaseSort {
    const fn next(self) -> Self {
        match self {
            Self::Exclusive => Self::Total,
            Self::Total => Self::Count,
            Self::Count => Self::P50,
            Self::P50 => Self::P99,
            Self::P99 => Self::Max,
            Self::Max => Self::Name,
            Self::Name => Self::Exclusive,
        }
    }

    /// The number that is sorted by; what is not known is less than everything known.
    const fn value(self, row: &PhaseRow) -> Option<u64> {
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

/// The state of the phases view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    /// The rows and the selected one.
    pub list: List<PhaseKey>,
    /// The column that rows are sorted by.
    pub sort: PhaseSort,
    /// Whether the smallest comes first (for names: the last).
    pub reversed: bool,
    /// Indices into the snapshot's rows, in the order of the list. Rows of one process stand together.
    pub order: Vec<usize>,
}

impl Phases {
    /// Takes over a new snapshot, or a new order.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot) {
        let rows = &snapshot.phases;
        let mut processes = Vec::new();
        for row in rows {
            if !processes.contains(&row.pid) {
                processes.push(row.pid);
            }
        }
        let process = |row: &PhaseRow| processes.iter().position(|&pid| pid == row.pid);
        self.order = (0..rows.len()).collect();
        // A stable sort: equal rows keep the snapshot's order, so that they do not dance.
        self.order.sort_by(|&a, &b| {
            let (a, b) = if self.reversed { (b, a) } else { (a, b) };
            self.sort.value(&rows[b]).cmp(&self.sort.value(&rows[a]))
        });
        if self.reversed && self.sort == PhaseSort::Name {
            self.order.reverse();
        }
        self.order.sort_by_key(|&index| process(&rows[index]));
        self.list.set_keys(self.order.iter().map(|&index| PhaseKey::of(&rows[index])).collect());
    }

    /// The selected row.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a PhaseRow> {
        snapshot.phases.get(*self.order.get(self.list.index())?)
    }

    /// Sorts by the next column, largest first.
    pub(crate) fn next_sort(&mut self) {
        self.sort = self.sort.next();
        self.reversed = false;
    }
}
