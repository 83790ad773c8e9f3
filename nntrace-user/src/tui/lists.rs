//! Lists with a selected line, and lists that are sorted by a column.

pub(super) mod list;
pub(super) mod table;

use super::actions::Motion;

/// Lines of a view, which keys move through and sort.
pub(crate) trait Lines {
    /// Moves the selection; it stops at the ends.
    fn go(&mut self, motion: Motion);

    /// Returns the position of the selected line, and the number of lines.
    fn position(&self) -> (usize, usize);

    /// Sorts by the next column, largest first. No effect on lists that cannot be sorted.
    fn next_sort(&mut self) {}

    /// Reverses the order.
    fn reverse(&mut self) {}
}
