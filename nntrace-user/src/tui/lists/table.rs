//! A list whose rows are sorted by a column.

use super::{Lines, list::List};
use crate::tui::{actions::Motion, sample::Sample};

/// Column that rows can be sorted by.
pub(crate) trait Column: Copy + PartialEq + 'static {
    /// Columns in the order in which `s` cycles through them. The last one keeps the snapshot's order.
    const ALL: &'static [Self];

    /// Returns the sort key of a row; unknown values are smallest.
    fn value(self, sample: &Sample, row: usize) -> Option<u64>;
}

/// A list of rows of the snapshot, sorted by a column.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, C> {
    /// The rows by identity, and the selected one.
    pub list: List<K>,
    /// The column that rows are sorted by.
    pub sort: C,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Indices into the snapshot's rows, in the order of the list.
    pub order: Vec<usize>,
}

impl<K, C: Column> Default for Table<K, C> {
    fn default() -> Self {
        Self { list: List::default(), sort: C::ALL[0], reversed: false, order: Vec::new() }
    }
}

impl<K: PartialEq, C: Column> Table<K, C> {
    /// Sorts these rows of a snapshot.
    pub(crate) fn arrange(&mut self, sample: &Sample, rows: impl Iterator<Item = usize>) {
        self.order = rows.collect();
        // A stable sort: equal rows keep the snapshot's order, so that they do not jump around.
        self.order.sort_by(|&a, &b| {
            let (a, b) = if self.reversed { (b, a) } else { (a, b) };
            self.sort.value(sample, b).cmp(&self.sort.value(sample, a))
        });
        if self.reversed && is_order_of_snapshot(self.sort) {
            self.order.reverse();
        }
    }

    /// Sets the identity of each row.
    pub(crate) fn identify(&mut self, key: impl Fn(usize) -> K) {
        self.list.set_keys(self.order.iter().map(|&row| key(row)).collect());
    }

    /// Index of the selected row in the snapshot.
    #[must_use]
    pub(crate) fn selected(&self) -> Option<usize> {
        self.order.get(self.list.index()).copied()
    }

    /// Returns the arrow after a column's title; nothing unless rows are sorted by it.
    #[must_use]
    pub(crate) fn arrow(&self, column: C) -> &'static str {
        match (self.sort == column, self.reversed != is_order_of_snapshot(column)) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        }
    }
}

fn is_order_of_snapshot<C: Column>(column: C) -> bool {
    C::ALL.last() == Some(&column)
}

impl<K: PartialEq, C: Column> Lines for Table<K, C> {
    fn go(&mut self, motion: Motion) {
        self.list.go(motion);
    }

    fn position(&self) -> (usize, usize) {
        Lines::position(&self.list)
    }

    fn next_sort(&mut self) {
        let next = C::ALL.iter().position(|&column| column == self.sort).map_or(0, |at| at + 1);
        self.sort = C::ALL[next % C::ALL.len()];
        self.reversed = false;
    }

    fn reverse(&mut self) {
        self.reversed = !self.reversed;
    }
}
