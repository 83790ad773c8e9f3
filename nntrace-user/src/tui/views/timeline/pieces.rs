//! Sections and states as pieces of a lane, which do not overlap.

use std::collections::BTreeSet;

use crate::model::scheduling::Activity;
use crate::report::snapshot::{RecentActivity, RecentSectionRow};
use crate::tui::views::timeline::TimeSpan;

/// Part of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Begin, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// Index of what is there.
    pub of: usize,
}

/// The sections that are on the screen, with their indices. One that took no time takes 1 ns.
fn shown(sections: &[RecentSectionRow], span: TimeSpan) -> impl Iterator<Item = (usize, u64, u64)> {
    // In the order of their begins: none after these is on the screen.
    let until = sections.partition_point(|section| section.begin_ns < span.end());
    let ends = sections[..until].iter().enumerate().map(|(of, section)| {
        let begin = section.begin_ns;
        (of, begin, section.end_ns.max(begin.saturating_add(1)))
    });
    ends.filter(move |&(_, _, end)| end > span.begin)
}

/// Returns the numbers of sections around those on the screen, each once.
pub(super) fn depths(sections: &[RecentSectionRow], span: TimeSpan) -> BTreeSet<u8> {
    shown(sections, span).map(|(of, ..)| sections[of].depth).collect()
}

/// Returns the sections with this many others around them.
pub(super) fn at_depth(
    sections: &[RecentSectionRow],
    depth: u8,
    span: TimeSpan,
) -> impl Iterator<Item = Piece> {
    let mut last = 0;
    shown(sections, span).filter(move |&(of, ..)| sections[of].depth == depth).filter_map(
        move |(of, begin, end)| {
            let begin = begin.max(last);
            last = end.max(last);
            (begin < end).then_some(Piece { begin, end, of })
        },
    )
}

/// Returns the innermost section of each instant.
pub(super) fn innermost(sections: &[RecentSectionRow], span: TimeSpan) -> impl Iterator<Item = Piece> {
    let mut pieces = Vec::new();
    let (mut now, mut open): (u64, Vec<(u64, usize)>) = (0, Vec::new());
    let add = |pieces: &mut Vec<Piece>, now: &mut u64, end: u64, of| {
        if *now < end {
            pieces.push(Piece { begin: *now, end, of });
            *now = end;
        }
    };
    for (of, begin, end) in shown(sections, span) {
        while let Some((outer_end, outer)) = open.pop_if(|(outer_end, _)| *outer_end <= begin) {
            add(&mut pieces, &mut now, outer_end, outer);
        }
        if let Some(&(_, outer)) = open.last() {
            add(&mut pieces, &mut now, begin, outer);
        }
        now = now.max(begin);
        open.push((end, of));
    }
    while let Some((end, of)) = open.pop() {
        add(&mut pieces, &mut now, end, of);
    }
    pieces.into_iter()
}

/// Returns the CPUs on which threads ran, in their order.
pub(super) fn cpus(recent: &RecentActivity) -> BTreeSet<u32> {
    let states = recent.threads.iter().flat_map(|thread| &thread.states);
    let cpu = |activity| if let Activity::OnCpu(cpu) = activity { Some(cpu) } else { None };
    states.filter_map(|state| cpu(state.activity)).collect()
}

/// Returns the threads that ran on a CPU.
pub(super) fn on_cpu(recent: &RecentActivity, cpu: u32, span: TimeSpan) -> Vec<Piece> {
    let threads = recent.threads.iter().enumerate();
    let runs = threads.flat_map(|(of, thread)| {
        let runs = thread.states.iter().filter(move |state| state.activity == Activity::OnCpu(cpu));
        runs.map(move |state| Piece { begin: state.begin_ns, end: state.end_ns, of })
    });
    let mut runs: Vec<Piece> = runs.filter(|run| run.end > span.begin && run.begin < span.end()).collect();
    runs.sort_by_key(|run| run.begin);
    let mut last = 0;
    runs.retain_mut(|run| {
        // Two threads never run on a CPU at once: the event of a switch has one time for both.
        run.begin = run.begin.max(last);
        last = last.max(run.end);
        run.begin < run.end
    });
    runs
}

#[cfg(test)]
mod tests {
    use nntrace_common::layer::{Layer, Phase, Tag};
    use proptest::prelude::*;

    use super::*;

    fn row(begin_ns: u64, end_ns: u64, depth: u8) -> RecentSectionRow {
        let tag = Tag::new(Layer::Runtime, Phase::Execution);
        RecentSectionRow { begin_ns, end_ns, exclusive_ns: Some(0), name: 0, depth, tag }
    }

    /// Sections of a thread: each begin opens one, each end closes the innermost.
    fn nested(steps: &[(bool, u64)]) -> Vec<RecentSectionRow> {
        let (mut now, mut open, mut rows) = (5, Vec::new(), Vec::new());
        for &(begins, after) in steps {
            now += after;
            if begins {
                open.push((now, open.len() as u8));
            } else if let Some((begin, depth)) = open.pop() {
                rows.push(row(begin, now, depth));
            }
        }
        rows.sort_by_key(|row| (row.begin_ns, row.depth));
        rows
    }

    proptest! {
        #[test]
        fn the_innermost_section_of_each_instant_is_there(
            steps in prop::collection::vec((any::<bool>(), 1..6_u64), 0..40),
            begin in 0..60_u64,
            length in 1..120_u64,
        ) {
            let rows = nested(&steps);
            let span = TimeSpan { begin, length };
            let pieces: Vec<Piece> = innermost(&rows, span).collect();
            for now in begin..span.end() {
                let expected = rows.iter().rposition(|row| row.begin_ns <= now && now < row.end_ns);
                let found: Vec<usize> =
                    pieces.iter().filter(|piece| piece.begin <= now && now < piece.end).map(|piece| piece.of).collect();
                prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{}", now);
                for depth in depths(&rows, span) {
                    let there = |row: &RecentSectionRow| row.depth == depth && row.begin_ns <= now && now < row.end_ns;
                    let found = at_depth(&rows, depth, span).find(|piece| piece.begin <= now && now < piece.end);
                    prop_assert_eq!(found.map(|piece| piece.of), rows.iter().position(there));
                }
            }
        }
    }

    #[test]
    fn sections_that_cross_do_not_overlap() {
        let rows = [row(0, 10, 0), row(5, 20, 1), row(20, 20, 0)];
        let span = TimeSpan { begin: 0, length: 100 };
        let piece = |begin, end, of| Piece { begin, end, of };
        assert_eq!(
            innermost(&rows, span).collect::<Vec<_>>(),
            [piece(0, 5, 0), piece(5, 20, 1), piece(20, 21, 2)]
        );
        let rows = [row(0, 10, 0), row(5, 20, 0)];
        assert_eq!(at_depth(&rows, 0, span).collect::<Vec<_>>(), [piece(0, 10, 0), piece(10, 20, 1)]);
    }
}
