//! A list with one selected line, which is remembered by what it is and not by where it stands.

use super::Lines;
use crate::tui::actions::Motion;

/// The lines of a list by identity, the selected one, and the part that is on screen.
#[derive(Clone, Debug)]
pub(crate) struct List<K> {
    keys: Vec<K>,
    selected: usize,
    /// Whether the user has selected a line: the first one is selected until then.
    was_moved: bool,
    offset: usize,
    page: usize,
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), selected: 0, was_moved: false, offset: 0, page: 1 }
    }
}

impl<K: PartialEq> List<K> {
    /// Replaces the lines. The selected one stays selected wherever it is now; if it is gone, the one in its place is.
    pub(crate) fn set_keys(&mut self, keys: Vec<K>) {
        let kept = self.selected().filter(|_| self.was_moved);
        let kept = kept.and_then(|old| keys.iter().position(|key| key == old));
        self.selected = kept.unwrap_or(self.selected).min(keys.len().saturating_sub(1));
        self.keys = keys;
    }

    /// The selected line; `None` only of an empty list.
    pub(crate) fn selected(&self) -> Option<&K> {
        self.keys.get(self.selected)
    }

    /// Where the selected line stands.
    pub(crate) fn index(&self) -> usize {
        self.selected
    }

    /// All lines, in order.
    pub(crate) fn keys(&self) -> &[K] {
        &self.keys
    }

    /// Selects the line at this place.
    pub(crate) fn select(&mut self, index: usize) {
        self.was_moved = true;
        self.selected = index.min(self.keys.len().saturating_sub(1));
    }

    /// Moves the selection; it stops at the ends.
    pub(crate) fn go(&mut self, motion: Motion) {
        self.was_moved = true;
        let last = self.keys.len().saturating_sub(1);
        self.selected = moved(self.selected, motion, self.page).min(last);
    }

    /// Tells how many of `lines` screen lines are to be seen, `page` at most, with screen line `selected` among them.
    ///
    /// A view may draw more lines than there are keys (headings), hence its own numbers. Returns the first to draw.
    pub(crate) fn scroll(&mut self, lines: usize, selected: usize, page: usize) -> usize {
        self.page = page.max(1);
        // No empty space below the last line while there is something above the first.
        let lowest = selected.saturating_sub(self.page - 1);
        self.offset = self.offset.clamp(lowest, selected.max(lowest)).min(lines.saturating_sub(self.page));
        self.offset
    }
}

/// `position` after `motion`, without an upper end.
pub(crate) fn moved(position: usize, motion: Motion, page: usize) -> usize {
    match motion {
        Motion::Up => position.saturating_sub(1),
        Motion::Down => position.saturating_add(1),
        Motion::PageUp => position.saturating_sub(page),
        Motion::PageDown => position.saturating_add(page),
        Motion::First => 0,
        Motion::Last => usize::MAX,
    }
}

impl<K: PartialEq> Lines for List<K> {
    fn go(&mut self, motion: Motion) {
        List::go(self, motion);
    }

    fn position(&self) -> (usize, usize) {
        (self.index(), self.keys().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keys: &[char]) -> List<char> {
        let mut list = List::default();
        list.set_keys(keys.to_vec());
        list
    }

    #[test]
    fn the_selection_follows_its_line() {
        let mut list = list(&['a', 'b', 'c']);
        list.go(Motion::Down);
        list.set_keys(vec!['b', 'c', 'a']);
        assert_eq!(list.selected(), Some(&'b'));
        list.set_keys(vec!['x', 'y', 'z', 'b']);
        assert_eq!((list.selected(), list.index()), (Some(&'b'), 3));
    }

    #[test]
    fn the_first_line_is_selected_until_another_is() {
        let mut list = list(&['a', 'b', 'c']);
        list.set_keys(vec!['b', 'c', 'a']);
        assert_eq!(list.selected(), Some(&'b'));
    }

    #[test]
    fn a_lost_line_leaves_its_place_selected() {
        let mut list = list(&['a', 'b', 'c']);
        list.go(Motion::Last);
        list.set_keys(vec!['a', 'b']);
        assert_eq!(list.selected(), Some(&'b'));
        list.set_keys(Vec::new());
        assert_eq!(list.selected(), None);
        list.go(Motion::Down);
        list.set_keys(vec!['q']);
        assert_eq!(list.selected(), Some(&'q'));
    }

    #[test]
    fn motions_stop_at_the_ends() {
        let mut list = list(&['a', 'b', 'c', 'd', 'e']);
        list.go(Motion::Up);
        assert_eq!(list.index(), 0);
        assert_eq!(list.scroll(5, 0, 2), 0);
        list.go(Motion::PageDown);
        assert_eq!(list.index(), 2);
        assert_eq!(list.scroll(5, 2, 2), 1);
        list.go(Motion::Last);
        assert_eq!((list.index(), list.scroll(5, 4, 2)), (4, 3));
        list.go(Motion::PageUp);
        assert_eq!((list.index(), list.scroll(5, 2, 2)), (2, 2));
        list.go(Motion::First);
        assert_eq!((list.index(), list.scroll(5, 0, 2)), (0, 0));
    }

    #[test]
    fn a_growing_page_leaves_no_gap_below() {
        let mut list = list(&['a', 'b', 'c', 'd', 'e']);
        list.go(Motion::Last);
        assert_eq!(list.scroll(5, 4, 2), 3);
        assert_eq!(list.scroll(5, 4, 4), 1);
        assert_eq!(list.scroll(5, 4, 50), 0);
        assert_eq!(list.scroll(5, 4, 0), 4);
    }
}
