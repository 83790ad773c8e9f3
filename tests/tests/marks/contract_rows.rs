//! Rows of the mark contract, from `fixtures/contract.txt`, through replay.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result};
use nntrace_tests::{results, trace};
use nntrace_user::report::snapshot::TimesByLayer;

/// Cells by `<layer>_<phase>`, us.
type Cells = BTreeMap<String, i64>;

/// Row of the contract: its subject, its trace, totals, and self-times that differ from the totals.
struct Row {
    title: String,
    trace: String,
    totals: Cells,
    self_times: Cells,
}

fn rows() -> Result<Vec<Row>> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/contract.txt"))?;
    text.split("\n== ").skip(1).map(row).collect()
}

fn row(text: &str) -> Result<Row> {
    let (title, lines) = text.split_once('\n').context("a title")?;
    let mut row =
        Row { title: title.into(), trace: String::new(), totals: Cells::new(), self_times: Cells::new() };
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (first, rest) = line.trim_start().split_once(' ').with_context(|| line.to_owned())?;
        match first {
            "total" => row.totals = cells(rest)?,
            "self" => row.self_times = cells(rest)?,
            time => {
                let (thread, mark) = rest.trim_start().split_once(' ').with_context(|| line.to_owned())?;
                let (tid, pid) = match thread {
                    "app" => (1, 1),
                    "other" => (11, 1),
                    "binder" => (12, 1),
                    "driver" => (2, 2),
                    "driver2" => (22, 2),
                    _ => anyhow::bail!("{line}: an unknown thread"),
                };
                let payload = match mark.trim_start().split_once(' ') {
                    Some((kind, text)) => format!("{kind}|{pid}|{text}"),
                    None => format!("{}|{pid}", mark.trim()),
                };
                let time: u64 = time.parse()?;
                let _ = writeln!(row.trace, "{}", trace::line(time * 1_000, tid, pid, &payload));
            }
        }
    }
    Ok(row)
}

fn cells(text: &str) -> Result<Cells> {
    let cell = |cell: &str| {
        let (tag, us) = cell.split_once('=').with_context(|| cell.to_owned())?;
        Ok((tag.to_owned(), us.parse()?))
    };
    text.split_whitespace().map(cell).collect()
}

/// Returns all cells except the derived ones.
fn shown(times: &TimesByLayer) -> Cells {
    let cells = results::cells(times).filter(|(cell, _)| !cell.starts_with("LT_") && !cell.ends_with("_PO"));
    cells.map(|(cell, ns)| (cell, ns / 1_000)).collect()
}

#[test]
fn every_row_gives_its_numbers() -> Result<()> {
    let rows = rows()?;
    assert!(rows.len() >= 10);
    for row in rows {
        let snapshot = trace::replay(&row.trace)?;
        assert!(snapshot.diagnostics.is_empty(), "{}: {:?}", row.title, snapshot.diagnostics);
        let [report] = &snapshot.reports[..] else { panic!("{}: {:?}", row.title, snapshot.reports) };
        assert_eq!(shown(&report.total_ns), row.totals, "{}", row.title);
        let mut self_times = row.totals;
        self_times.extend(row.self_times);
        assert_eq!(shown(&report.self_ns), self_times, "{}", row.title);
    }
    Ok(())
}
