//! A histogram over a logarithmic axis of time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::histogram::Buckets;
use super::text::{put, right, width};
use super::theme::Theme;
use crate::report::number_format;

/// Columns for the numbers on the left, with the axis.
const MARGIN: usize = number_format::COUNT_WIDTH + 3;

/// Draws a distribution (ascending times, ns, each with its number of frames) into all of `area`: bars, axis, labels.
pub(crate) fn draw(times: &[(u64, u64)], theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width).saturating_sub(MARGIN + 1);
    let rows = usize::from(area.height).saturating_sub(2);
    let Some(buckets) = Buckets::of(times, columns).filter(|_| rows > 0) else {
        return;
    };
    let most = buckets.most();
    for row in 0..rows {
        let label = if row == 0 { number_format::count(most) } else { String::new() };
        let tick = if row == 0 { '┤' } else { '│' };
        let line = Line::from(vec![
            Span::raw(right(&label, MARGIN - 2)),
            Span::styled(format!(" {tick}"), Theme::dim()),
            Span::styled(bars(&buckets, rows, row), theme.bar()),
        ]);
        put(buffer, area, row, &line);
    }
    let (axis, labels) = axis(&buckets);
    let zero = Span::raw(right("0", MARGIN - 2));
    put(buffer, area, rows, &Line::from(vec![zero, Span::styled(format!(" └{axis}"), Theme::dim())]));
    put(buffer, area, rows + 1, &Line::from(" ".repeat(MARGIN) + &labels));
}

/// Row `row` of `rows`, from the top, of all bars.
fn bars(buckets: &Buckets, rows: usize, row: usize) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = u128::from(buckets.most().max(1));
    let full = rows as u128 * 8;
    let below = (rows - 1 - row) * 8;
    let cell = |&count: &u64| {
        let height = (u128::from(count) * full + most / 2) / most;
        // A single slow frame among thousands is what people look for: it is never rounded away.
        let height = height.max(u128::from(count > 0)) as usize;
        EIGHTHS[height.saturating_sub(below).min(8)]
    };
    buckets.counts.iter().map(cell).collect()
}

/// The axis, and under it the times at its ticks: powers of ten first, then fives and twos where there is room.
fn axis(buckets: &Buckets) -> (String, String) {
    let columns = buckets.counts.len();
    let mut axis = vec!['─'; columns];
    let mut labels = vec![' '; columns];
    for factor in [1, 5, 2] {
        for exponent in 0..=18 {
            let ns: u64 = factor * 10_u64.pow(exponent);
            let Some(column) = buckets.column(ns as f64) else {
                continue;
            };
            let label = round_time(ns);
            let wide = width(&label);
            // Centred on its tick, with a space on both sides, and not beyond the ends.
            let start = column.saturating_sub(wide / 2).min(columns.saturating_sub(wide));
            let room = start.saturating_sub(1)..(start + wide + 1).min(columns);
            if wide <= columns && labels[room].iter().all(|&cell| cell == ' ') {
                axis[column] = '┬';
                for (cell, character) in labels[start..].iter_mut().zip(label.chars()) {
                    *cell = character;
                }
            }
        }
    }
    (axis.into_iter().collect(), labels.into_iter().collect())
}

/// A round time in its unit, without decimals.
fn round_time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_times() {
        let buckets = Buckets { low: 900.0, high: 1.1e6, counts: vec![0; 50] };
        let (axis, labels) = axis(&buckets);
        assert_eq!(axis, "┬───────────────┬────────────────┬───────────────┬");
        assert_eq!(labels, "1 us          10 us           100 us          1 ms");
    }

    #[test]
    fn the_smallest_bar_is_seen() {
        let buckets = Buckets { low: 1.0, high: 4.0, counts: vec![0, 1, 1_000_000, 500_000] };
        assert_eq!(bars(&buckets, 2, 0), "  █ ");
        assert_eq!(bars(&buckets, 2, 1), " ▁██");
    }
}
