//! The stacks view: its rows in order, and how they are sorted.

use super::list::List;
use crate::report::snapshot::{Snapshot, StackFrame, StackRow};

/// Identity of a stack from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackKey {
    /// Process.
    pub pid: u32,
    /// Frames from the outermost in.
    pub path: Vec<StackFrame>,
}

/// The columns that stacks can be sorted by, in the order in which the key goes through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StackSort {
    /// Exclusive time.
    #[default]
    Exclusive,
    /// Total time.
    Total,
    /// Number of frames.
    Count,
    /// The order of the snapshot.
    Path,
}

impl StackSort {
    const fn value(self, row: &StackRow) -> u64 {
        match self {
            Self::Exclusive => row.exclusive_ns,
            Self::Total => row.total_ns,
            Self::Count => row.count,
            Self::Path => 0,
        }
    }
}

/// The state of the stacks view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stacks {
    /// The stacks and the selected one.
    pub list: List<StackKey>,
    /// The column that stacks are sorted by.
    pub sort: StackSort,
    /// Whether the smallest comes first (for paths: the last).
    pub reversed: bool,
    /// Indices into the snapshot's stacks, in the order of the list.
    pub order: Vec<usize>,
}

impl Stacks {
    /// Takes over a new snapshot, or a new order.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot) {
        let rows = &snapshot.stacks;
        self.order = (0..rows.len()).collect();
        self.order.sort_by(|&a, &b| {
            let (a, b) = if self.reversed { (b, a) } else { (a, b) };
            self.sort.value(&rows[b]).cmp(&self.sort.value(&rows[a]))
        });
        if self.reversed && self.sort == StackSort::Path {
            self.order.reverse();
        }
        let key = |&index: &usize| StackKey { pid: rows[index].pid, path: rows[index].path.clone() };
        self.list.set_keys(self.order.iter().map(key).collect());
    }

    /// The selected stack.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a StackRow> {
        snapshot.stacks.get(*self.order.get(self.list.index())?)
    }

    /// Sorts by the next column, largest first.
    pub(crate) fn next_sort(&mut self) {
        self.reversed = false;
        self.sort = match self.sort {
            StackSort::Exclusive => StackSort::Total,
            StackSort::Total => StackSort::Count,
            StackSort::Count => StackSort::Path,
            StackSort::Path => StackSort::Exclusive,
        };
    }
}
