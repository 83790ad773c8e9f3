//! How many CPUs of a cluster ran at once.

use ratatui::text::Line;

use crate::report::cpu_or_cluster::shares;
use crate::report::number_format;
use crate::report::snapshot::ConcurrencyRow;
use crate::tui::drawing::text::{percent_of_tenths, wrap};

/// A line of a table for each number of CPUs.
pub(crate) fn lines(rows: &[ConcurrencyRow]) -> Vec<Line<'static>> {
    let tenths = shares(&rows.iter().map(|row| row.ns).collect::<Vec<_>>(), 1000);
    let line = |(row, tenths): (&ConcurrencyRow, u64)| {
        Line::from(format!(
            "{:>12} {:>10} {:>6}",
            cpus(row),
            number_format::duration_ns(row.ns),
            percent_of_tenths(tenths)
        ))
    };
    rows.iter().zip(tenths).map(line).collect()
}

/// How many ran, or that this cannot be said.
fn cpus(row: &ConcurrencyRow) -> String {
    row.running_cpus.map_or_else(|| "off/unknown".into(), |cpus| cpus.to_string())
}

/// The concurrency in a line or a few, for when there is no room for a table.
pub(crate) fn in_short(rows: &[ConcurrencyRow], columns: usize) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let tenths = shares(&rows.iter().map(|row| row.ns).collect::<Vec<_>>(), 1000);
    let entries = rows.iter().zip(tenths);
    // A hard space within an entry, so that wrapping does not part it.
    let entries: Vec<_> =
        entries.map(|(row, tenths)| format!("{}:\u{a0}{}", cpus(row), percent_of_tenths(tenths))).collect();
    let text = format!("CPUs at once  {}", entries.join("  "));
    wrap(&text, columns).into_iter().map(Line::from).collect()
}
