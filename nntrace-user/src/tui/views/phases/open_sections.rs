//! Sections that have not ended yet, below their process.

use std::cmp::Reverse;

use nntrace_common::layer::{Layer, Phase};

use crate::report::number_format::{UNKNOWN, duration_ns};
use crate::report::snapshot::{Snapshot, UnfinishedRow};

/// Threads that are shown of each process.
const MOST: usize = 3;

/// Processes with sections that have not ended yet.
pub(super) fn processes(snapshot: &Snapshot) -> impl Iterator<Item = u32> {
    innermost(snapshot).filter_map(|row| row.pid)
}

/// Returns a line for each thread of a process that has been in a section for at least an interval, the longest first.
pub(super) fn lines(snapshot: &Snapshot, pid: u32) -> Vec<String> {
    let mut rows: Vec<&UnfinishedRow> = innermost(snapshot).filter(|row| row.pid == Some(pid)).collect();
    rows.sort_by_key(|row| Reverse(row.open_ns));
    let mut lines: Vec<String> = rows.iter().take(MOST).map(|row| line(row)).collect();
    match rows.len().saturating_sub(MOST) {
        0 => {}
        1 => lines.push(" 1 more thread in an open section".to_owned()),
        more => lines.push(format!(" {more} more threads in open sections")),
    }
    lines
}

/// The innermost section of each thread. Phases of the application are left out: they last as long as it does.
fn innermost(snapshot: &Snapshot) -> impl Iterator<Item = &UnfinishedRow> {
    let rows = &snapshot.unfinished;
    let is_last =
        |at: usize| rows.get(at + 1).is_none_or(|next| (next.pid, next.tid) != (rows[at].pid, rows[at].tid));
    rows.iter()
        .enumerate()
        .filter(move |&(at, row)| is_last(at) && !row.phase.is_some_and(Phase::is_application_phase))
        .map(|(_, row)| row)
}

fn line(row: &UnfinishedRow) -> String {
    let layer = row.layer.map_or(UNKNOWN, Layer::name);
    let phase = row.phase.map_or(UNKNOWN, Phase::name);
    format!(" open for {}: {layer} {phase} {}, thread {}", duration_ns(row.open_ns), row.name, row.tid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::sample;

    fn row(tid: u32, depth: u8, phase: Phase, open_ns: u64) -> UnfinishedRow {
        UnfinishedRow {
            pid: Some(7),
            tid,
            layer: Some(Layer::Driver),
            phase: Some(phase),
            name: format!("section {depth}"),
            depth,
            begin_ns: 1_000,
            open_ns,
        }
    }

    #[test]
    fn the_innermost_of_each_thread_is_shown_and_the_longest_come_first() {
        let unfinished = vec![
            row(1, 0, Phase::Overall, 90_000_000_000),
            row(2, 0, Phase::Compilation, 8_000_000_000),
            row(2, 1, Phase::Compilation, 7_000_000_000),
            row(3, 0, Phase::Execution, 9_000_000_000),
            row(4, 0, Phase::Overall, 90_000_000_000),
            row(4, 1, Phase::Execution, 1_000_000_000),
            row(5, 0, Phase::Execution, 1_000_000),
        ];
        let snapshot = Snapshot { unfinished, ..sample::empty() };
        assert_eq!(
            lines(&snapshot, 7),
            [
                " open for 9.00 s: Driver Execution section 0, thread 3",
                " open for 7.00 s: Driver Compilation section 1, thread 2",
                " open for 1.00 s: Driver Execution section 1, thread 4",
                " 1 more thread in an open section",
            ]
        );
        assert_eq!(processes(&snapshot).collect::<Vec<_>>(), [7; 4]);
        assert_eq!(lines(&snapshot, 8), Vec::<String>::new());
    }
}
