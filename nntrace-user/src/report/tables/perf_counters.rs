//! Counts of performance events, as a table.

use std::cmp::Reverse;

use crate::{
    model::plurals::one_or_many,
    report::{
        number_format::{self, or_unknown},
        snapshot::{CountRow, CountsRow, FunctionCountsRow, PerfCounterTable, PhaseCountsRow},
        terminal_text::{Text, line},
    },
};

/// Functions of a layer and phase at most: those with the highest count of the first event.
const FUNCTIONS: usize = 8;
/// Width of a column at least.
const WIDTH: usize = 9;

/// Lines for each process; nothing where nothing was counted.
pub(super) fn table(text: &mut Text, counts: Option<&PerfCounterTable>) {
    let Some(counts) = counts else { return };
    let events = counts.events.iter().map(|row| row.event.as_str());
    let mut columns: Vec<&str> = events.collect();
    let has_ratio = counts.phases.iter().any(|row| row.counts.instructions_per_cycle.is_some());
    columns.extend(has_ratio.then_some("per cycle"));
    let mut pid = None;
    for phase in &counts.phases {
        if pid != Some(phase.pid) {
            pid = Some(phase.pid);
            line!(text, "counts of {} ({}), in sections by themselves", phase.comm, phase.pid);
            let names: String = columns.iter().map(|name| cell(name, name)).collect();
            line!(text, "  {:<12}{:<15}{:>8}{names}", "layer", "phase", "count");
        }
        let row = values(&phase.counts, &columns, has_ratio);
        line!(text, "  {:<12}{:<15}{row}", phase.layer.name(), phase.phase.name());
        functions(text, counts, phase, &columns, has_ratio);
    }
    let scaled = counts.phases.iter().flat_map(|row| &row.counts.counts).any(|row| row.is_scaled);
    if scaled {
        line!(
            text,
            "  ~ there are fewer counters than events: counted in a part of the time, and scaled to all of it"
        );
    }
    cost(text, counts);
}

fn functions(
    text: &mut Text,
    counts: &PerfCounterTable,
    phase: &PhaseCountsRow,
    columns: &[&str],
    has_ratio: bool,
) {
    let key = (phase.pid, phase.layer, phase.phase);
    let is_there = |row: &&FunctionCountsRow| (row.site.pid, row.site.layer, row.site.phase) == key;
    let mut rows: Vec<&FunctionCountsRow> = counts.functions.iter().filter(is_there).collect();
    rows.sort_by_key(|row| Reverse(row.counts.counts.first().and_then(|first| first.count)));
    for row in rows.iter().take(FUNCTIONS) {
        line!(text, "  {:<27}{}  {}", "", values(&row.counts, columns, has_ratio), row.site.name);
    }
    if let Some(more) = rows.len().checked_sub(FUNCTIONS).filter(|&more| more > 0) {
        line!(text, "  {:<27}{}", "", number_format::plural(more as u64, "more function"));
    }
}

fn values(row: &CountsRow, columns: &[&str], has_ratio: bool) -> String {
    let mut cells: Vec<String> = row.counts.iter().map(count).collect();
    if has_ratio {
        let is_scaled = row.counts.iter().any(|row| row.is_scaled);
        let tilde = if is_scaled { "~" } else { "" };
        let ratio = row.instructions_per_cycle.map(|ratio| format!("{tilde}{ratio:.2}"));
        cells.push(ratio.unwrap_or_else(|| number_format::UNKNOWN.to_owned()));
    }
    let cells: String = columns.iter().zip(&cells).map(|(name, value)| cell(name, value)).collect();
    format!("{:>8}{cells}", number_format::count(row.sections))
}

fn count(row: &CountRow) -> String {
    let tilde = if row.is_scaled { "~" } else { "" };
    row.count.map_or_else(
        || number_format::UNKNOWN.to_owned(),
        |count| format!("{tilde}{}", number_format::count(count)),
    )
}

/// A value in the column of this name.
fn cell(name: &str, value: &str) -> String {
    format!("{value:>width$}", width = (name.chars().count() + 2).max(WIDTH))
}

/// Cost of reading, and what is missing.
fn cost(text: &mut Text, counts: &PerfCounterTable) {
    let own: Vec<String> = counts
        .events
        .iter()
        .filter_map(|row| {
            let count = row.count_per_read.filter(|&count| count > 0)?;
            Some(format!("{} {}", number_format::count(count), row.event))
        })
        .collect();
    let own = if own.is_empty() { String::new() } else { format!(", and counts itself: {}", own.join(", ")) };
    let time = or_unknown(counts.ns_per_read, number_format::duration_ns);
    line!(text, "  a reading of all events, at each mark and switch of a thread, takes {time}{own}");
    if counts.uncounted_marks > 0 {
        line!(
            text,
            "  {} without a reading of all events (no room for the thread, or a CPU on which one does not count): \
             counts are too low",
            number_format::plural(counts.uncounted_marks, "mark")
        );
    }
    if counts.uncounted_sections > 0 {
        line!(
            text,
            "  {} of functions that there was no room for {} in no count",
            number_format::plural(counts.uncounted_sections, "section"),
            one_or_many(counts.uncounted_sections, "is", "are")
        );
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::layer::{Layer, Phase};

    use super::*;
    use crate::report::snapshot::{PerfEventRow, SiteRow};

    fn counts(sections: u64, scale: u64) -> CountsRow {
        let row = |event: &str, count, is_scaled| CountRow {
            event: event.into(),
            count,
            is_scaled,
            ..CountRow::default()
        };
        CountsRow {
            sections,
            counts: vec![
                row("cycles", Some(1_234_567 * scale), false),
                row("instructions", Some(2_345_678 * scale), false),
                row("cache-misses", Some(4_321 * scale), true),
                row("major-faults", None, true),
            ],
            instructions_per_cycle: Some(1.9),
        }
    }

    #[test]
    fn functions_stand_under_their_phase() {
        let event = |event: &str, count_per_read| PerfEventRow { event: event.into(), count_per_read };
        let site = |name: &str| SiteRow {
            pid: 4_711,
            layer: Layer::Runtime,
            phase: Phase::Execution,
            name: name.into(),
        };
        let function = |name: &str, scale| FunctionCountsRow { site: site(name), counts: counts(10, scale) };
        let mut functions: Vec<_> = (1..=9).map(|n| function(&format!("small{n}"), n)).collect();
        functions.push(function("conv", 1_000));
        let table = PerfCounterTable {
            events: vec![
                event("cycles", Some(310)),
                event("instructions", Some(420)),
                event("cache-misses", Some(0)),
                event("major-faults", None),
            ],
            ns_per_read: Some(212),
            uncounted_marks: 3,
            uncounted_sections: 2,
            phases: vec![PhaseCountsRow {
                pid: 4_711,
                comm: "bench".into(),
                layer: Layer::Runtime,
                phase: Phase::Execution,
                counts: counts(100, 1_045),
            }],
            functions,
        };
        let mut text = Text::new();
        super::table(&mut text, Some(&table));
        let unread =
            PerfCounterTable { events: vec![event("task-clock", None)], ..PerfCounterTable::default() };
        super::table(&mut text, Some(&unread));
        super::table(&mut text, None);
        insta::assert_snapshot!(text);
    }
}
