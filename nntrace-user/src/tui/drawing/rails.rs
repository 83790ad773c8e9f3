//! Measured rails, below the CPUs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::text::{below_first, left, list, put, right, rule};
use crate::report::rails::{joules, notes, watts};
use crate::report::snapshot::{RailRow, Snapshot};

/// Height of the view from which on there is room for rails.
const TALL: u16 = 18;
/// Part of the height that rails take at most.
const MOST: u16 = 3;
/// Columns of an energy, and of a power.
const FIGURE: usize = 10;
/// Columns of a name at most.
const NAME: usize = 32;

/// Returns how many rows of a view of this many the rails take.
pub(crate) fn height(snapshot: &Snapshot, rows: u16) -> u16 {
    match rails(snapshot) {
        [] => 0,
        _ if rows < TALL => 0,
        rails => (rails.len() as u16).saturating_add(1).min(rows / MOST),
    }
}

/// Draws a heading and a line for each rail.
pub(crate) fn draw(snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    put(buffer, area, 0, &rule("measured rails", "they may overlap", columns));
    let lines: Vec<String> = rails(snapshot).iter().map(|rail| line(rail, columns)).collect();
    list(buffer, below_first(area), &lines);
}

fn rails(snapshot: &Snapshot) -> &[RailRow] {
    snapshot.rails.as_ref().map_or(&[], |rails| &rails.rails)
}

/// Returns the line of a rail; of what people should know of it, what is left of the line has room for.
fn line(rail: &RailRow, columns: usize) -> String {
    let name = columns.saturating_sub(1 + 2 * FIGURE).min(NAME);
    let rest = columns.saturating_sub(1 + name + 2 * FIGURE);
    let figures = right(&joules(rail.joules()), FIGURE) + &right(&watts(rail.mean_watts()), FIGURE);
    format!(" {}{figures}{}", left(&rail.path(), name), left(&notes(rail), rest))
}
