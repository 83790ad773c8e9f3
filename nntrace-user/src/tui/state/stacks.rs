//! The stacks view: its rows in order, and how they are sorted.

use super::Sample;
use super::table::{Column, Table};
use crate::report::snapshot::{Snapshot, StackFrame, StackRow};

/// Identity of a stack from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackKey {
    /// Process.
    pub pid: u32,
    /// Frames from the outermost in.
    pub path: Vec<StackFrame>,
}

/// The columns that stacks can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackSort {
    /// Exclusive time.
    Exclusive,
    /// Total time.
    Total,
    /// Number of frames.
    Count,
    /// The order of the snapshot.
    Path,
}

impl Column for StackSort {
    const ALL: &'static [Self] = &[Self::Exclusive, Self::Total, Self::Count, Self::Path];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        let row = &sample.snapshot.stacks[row];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Total => Some(row.total_ns),
            Self::Count => Some(row.count),
            Self::Path => None,
        }
    }
}

/// The state of the stacks view.
pub(crate) type Stacks = Table<StackKey, StackSort>;

impl Stacks {
    /// Takes over a new snapshot, or a new order.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.stacks;
        self.arrange(sample, 0..rows.len());
        self.identify(|row| StackKey { pid: rows[row].pid, path: rows[row].path.clone() });
    }

    /// The selected stack.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a StackRow> {
        snapshot.stacks.get(self.selected()?)
    }
}
