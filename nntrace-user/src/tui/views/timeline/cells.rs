//! Columns of a lane, each with what takes most of it.

use super::pieces::Piece;
use crate::tui::views::timeline::TimeSpan;

/// Parts of a column that are kept apart; of more, some are added up by their kind alone.
const APART: usize = 8;

/// A column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Index of what takes most of it among those of the kind that does; `None` where nothing is there.
    pub of: Option<usize>,
    /// Whether that takes half of it or more.
    pub is_mostly_one: bool,
    /// Whether all that is there takes half of it or more.
    pub is_mostly_covered: bool,
}

/// Returns the column of an instant (ns) on the screen.
pub(super) fn column(span: TimeSpan, columns: usize, at: u64) -> usize {
    let offset = u128::from(at.saturating_sub(span.begin)) * columns as u128;
    usize::try_from(offset / u128::from(span.length))
        .map_or(columns, |column| column.min(columns))
        .min(columns - 1)
}

/// Returns the first instant of a column, ns.
pub(super) fn begin(span: TimeSpan, columns: usize, column: usize) -> u64 {
    let offset = u128::from(span.length) * column as u128;
    span.begin.saturating_add(u64::try_from(offset.div_ceil(columns as u128)).unwrap_or(u64::MAX))
}

/// Fills the columns with pieces in order of time, which do not overlap.
pub(super) fn fill(
    pieces: impl Iterator<Item = Piece>,
    span: TimeSpan,
    columns: usize,
    kind: impl Fn(usize) -> usize,
) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); columns];
    let mut content = Content::default();
    let mut now = 0;
    for Piece { begin: from, end, of } in pieces {
        let (mut from, end) = (from.max(span.begin), end.min(span.end()));
        while from < end {
            let at = column(span, columns, from);
            if at != now {
                cells[now] = content.cell(width(span, columns, now));
                content.clear();
                now = at;
            }
            let until = begin(span, columns, at + 1).min(end).max(from + 1);
            content.add(of, kind(of), until - from);
            from = until;
        }
    }
    cells[now] = content.cell(width(span, columns, now));
    cells
}

fn width(span: TimeSpan, columns: usize, column: usize) -> u64 {
    begin(span, columns, column + 1) - begin(span, columns, column)
}

/// What was found in a column.
#[derive(Default)]
struct Content {
    /// Time of each kind, ns.
    kinds: Vec<(usize, u64)>,
    /// Index, kind and time (ns) of each part.
    parts: Vec<(usize, usize, u64)>,
}

impl Content {
    fn clear(&mut self) {
        self.kinds.clear();
        self.parts.clear();
    }

    fn add(&mut self, of: usize, kind: usize, ns: u64) {
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += ns,
            None => self.kinds.push((kind, ns)),
        }
        // What is around others comes again soon.
        match self.parts.iter_mut().rev().take(APART).find(|(known, ..)| *known == of) {
            Some((.., sum)) => *sum += ns,
            None => self.parts.push((of, kind, ns)),
        }
    }

    fn cell(&self, width: u64) -> Cell {
        // Of equal ones the first counts.
        let most = self.kinds.iter().rev().max_by_key(|(_, ns)| *ns);
        let covered: u64 = self.kinds.iter().map(|(_, ns)| ns).sum();
        let Some(&(kind, _)) = most else { return Cell::default() };
        let of_kind = self.parts.iter().rev().filter(|(_, other, _)| *other == kind);
        let longest = of_kind.max_by_key(|(.., ns)| *ns);
        Cell {
            of: longest.map(|(of, ..)| *of),
            is_mostly_one: longest.is_some_and(|(.., ns)| ns.saturating_mul(2) >= width),
            is_mostly_covered: covered.saturating_mul(2) >= width,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The same by a look at every nanosecond.
    fn slowly(pieces: &[Piece], span: TimeSpan, columns: usize, kind: impl Fn(usize) -> usize) -> Vec<Cell> {
        let mut times = vec![(BTreeMap::<usize, u64>::new(), Vec::<(usize, u64)>::new(), 0); columns];
        for now in span.begin..span.end() {
            let at = ((now - span.begin) as usize * columns) / span.length as usize;
            let (kinds, parts, width) = &mut times[at];
            *width += 1;
            let Some(piece) = pieces.iter().find(|piece| piece.begin <= now && now < piece.end) else {
                continue;
            };
            *kinds.entry(kind(piece.of)).or_default() += 1;
            match parts.iter_mut().find(|(of, _)| *of == piece.of) {
                Some((_, ns)) => *ns += 1,
                None => parts.push((piece.of, 1)),
            }
        }
        let cell = |(kinds, parts, width): &(BTreeMap<usize, u64>, Vec<(usize, u64)>, u64)| {
            let most = kinds.values().max()?;
            // The first of the kinds with that time to come.
            let (first, _) = parts.iter().find(|(of, _)| kinds[&kind(*of)] == *most)?;
            let of_kind = parts.iter().filter(|(of, _)| kind(*of) == kind(*first));
            let (of, ns) = of_kind.rev().max_by_key(|(_, ns)| *ns)?;
            let covered: u64 = kinds.values().sum();
            Some(Cell {
                of: Some(*of),
                is_mostly_one: ns * 2 >= *width,
                is_mostly_covered: covered * 2 >= *width,
            })
        };
        times.iter().map(|times| cell(times).unwrap_or_default()).collect()
    }

    proptest! {
        #[test]
        fn each_column_has_what_takes_most_of_it(
            stretches in prop::collection::vec((0..9_u64, 1..9_u64, 0..6_usize), 0..12),
            begin in 0..30_u64,
            length in 1..90_u64,
            columns in 1..24_usize,
        ) {
            let mut now = 0;
            let pieces: Vec<Piece> = stretches.iter().map(|&(gap, length, of)| {
                let begin = now + gap;
                now = begin + length;
                Piece { begin, end: now, of }
            }).collect();
            let span = TimeSpan { begin, length };
            let kind = |of: usize| of % 3;
            let columns = columns.min(length as usize);
            let filled = fill(pieces.iter().copied(), span, columns, kind);
            prop_assert_eq!(filled, slowly(&pieces, span, columns, kind));
        }
    }

    #[test]
    fn more_columns_than_nanoseconds_are_no_harm() {
        let span = TimeSpan { begin: 3, length: 2 };
        let pieces = [Piece { begin: 0, end: 9, of: 1 }];
        let cells = fill(pieces.into_iter(), span, 7, |_| 0);
        assert_eq!(cells.iter().filter(|cell| cell.of.is_some()).count(), 2);
        let last = TimeSpan { begin: u64::MAX - 1, length: u64::MAX };
        assert_eq!(fill(pieces.into_iter(), last, 7, |_| 0), [Cell::default(); 7]);
    }
}
