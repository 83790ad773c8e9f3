//! Power states as text for people, at most 80 columns wide.

use super::{Group, Measure, PowerTable, Row, What};
use crate::report::{
    incomplete_figures::Figures,
    number_format::{self, UNKNOWN},
    snapshot::Snapshot,
    tables,
    terminal_text::{Text, clean, line},
};

/// Columns of names.
const NAME: usize = 24;

/// The table as text.
#[must_use]
pub fn render(snapshot: &Snapshot, table: PowerTable) -> Text {
    let groups = table.groups(snapshot);
    let mut text = Text::new();
    if groups.is_empty() {
        line!(text, "no power events were seen");
    } else {
        let window = number_format::duration_ns(snapshot.window.length_ns());
        match table {
            PowerTable::Idle => {
                line!(text, "idle states that the kernel asked for, in {window}");
                times(&mut text, snapshot, &groups);
                stays(&mut text, snapshot, &groups);
            }
            PowerTable::Frequency => frequencies(&mut text, snapshot, &groups, &window),
            PowerTable::Cluster => {
                line!(
                    text,
                    "clusters in {window}: active at the highest frequency requested by a running CPU,"
                );
                line!(text, "idle in the deepest state that all CPUs share");
                times(&mut text, snapshot, &groups);
            }
        }
    }
    text + &tables::losses_and_notes(snapshot)
}

/// Text in this many columns, [clean]; cut, if it is longer.
#[must_use]
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= columns {
        return format!("{text:<columns$}");
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Rows that there is something in, each with its share. One that would be shown nothing of is shown all the same.
fn shown(group: &Group) -> impl Iterator<Item = (&Row, u64)> {
    let rows = group.rows.iter().zip(group.shares());
    rows.filter(|(row, _)| row.ns > 0 || matches!(row.what, What::IdleState(..) | What::AtOnce(_)))
}

/// The times of a group, of which those that clusters decide are made of records.
fn figures(snapshot: &Snapshot, group: &Group) -> Figures {
    let key = match (group.is_cluster(), group.measure) {
        (true, _) => "clusters",
        (false, Measure::Effective) => "cpus.effective",
        (false, _) => "cpus",
    };
    Figures::under(snapshot, key)
}

fn times(text: &mut Text, snapshot: &Snapshot, groups: &[Group]) {
    line!(text, "{:NAME$}{:>9}{:>8}{:>8}{:>9}{:>9}{:>9}", "", "total", "%", "hits", "min", "avg", "max");
    let mut last = None;
    for group in groups {
        if last != Some(&group.unit) {
            line!(text, "{}", group.title());
            last = Some(&group.unit);
        }
        let figures = figures(snapshot, group);
        for (row, share) in shown(group) {
            let time = |ns: Option<u64>| figures.known(ns, number_format::duration_ns);
            let idle = row.idle.as_ref();
            let average = row.hits.and_then(|hits| row.ns.checked_div(hits));
            let one = format!(
                "  {}{:>9}{:>8}{:>8}{:>9}{:>9}{:>9}",
                fit(&row.what.label(group.is_cluster()), NAME - 2),
                figures.time(row.ns),
                figures.text(&number_format::hundredths(share)),
                figures.known(row.hits, number_format::count),
                time(idle.and_then(|idle| idle.min_ns)),
                time(average),
                time(idle.and_then(|idle| idle.max_ns)),
            );
            // What is never known of a kind of row is left out.
            line!(text, "{}", one.trim_end_matches([' ', '-']));
        }
    }
}

fn stays(text: &mut Text, snapshot: &Snapshot, groups: &[Group]) {
    let figures = Figures::under(snapshot, "cpus.idle.p50_ns");
    let of = |group: &Group| {
        let rows = group.rows.iter().filter_map(|row| row.idle.clone());
        rows.filter(|idle| idle.whole_stays > 0).collect::<Vec<_>>()
    };
    if groups.iter().all(|group| of(group).is_empty()) {
        return;
    }
    line!(text, "");
    line!(text, "single stays, of which begin and end were seen; early: shorter than what pays,");
    line!(text, "late: long enough for the next deeper state");
    line!(text, "{:NAME$}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}", "", "stays", "p50", "p90", "p99", "early", "late");
    for group in groups {
        let states = of(group);
        if !states.is_empty() {
            line!(text, "{}", group.title());
        }
        for idle in states {
            let time = |ns: Option<u64>| figures.known(ns, number_format::duration_ns);
            line!(
                text,
                "  {}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}",
                fit(&What::IdleState(idle.state, idle.name.clone()).label(false), NAME - 2),
                figures.count(idle.whole_stays),
                time(idle.p50_ns),
                time(idle.p90_ns),
                time(idle.p99_ns),
                figures.known(idle.early, number_format::count),
                figures.known(idle.late, number_format::count),
            );
        }
    }
}

fn frequencies(text: &mut Text, snapshot: &Snapshot, groups: &[Group], window: &str) {
    line!(text, "frequencies in {window}; requested: for the CPU; effective: of its cluster,");
    line!(text, "the highest that one of its running CPUs requested");
    line!(text, "{:NAME$}{:>25}   {:>25}", "", "---------- requested", "---------- effective");
    line!(text, "{:NAME$}{:>9}{:>8}{:>8}   {:>9}{:>8}{:>8}", "", "time", "%", "hits", "time", "%", "hits");
    for unit in groups.chunk_by(|a, b| a.unit == b.unit) {
        line!(text, "{}", unit[0].title());
        let of = |measure: Measure| -> Vec<(&Row, u64, Figures)> {
            let groups = unit.iter().filter(|group| group.measure == measure);
            let rows = groups
                .flat_map(|group| shown(group).map(|(row, share)| (row, share, figures(snapshot, group))));
            rows.collect()
        };
        let (requested, effective) = (of(Measure::Requested), of(Measure::Effective));
        let mut all: Vec<&What> = requested.iter().chain(&effective).map(|(row, ..)| &row.what).collect();
        // Frequencies first, from the fastest down, then the others as they come.
        all.sort_by_key(|what| match what {
            What::At(khz) => (0, std::cmp::Reverse(*khz)),
            What::Idle => (1, std::cmp::Reverse(None)),
            What::Offline => (2, std::cmp::Reverse(None)),
            _ => (3, std::cmp::Reverse(None)),
        });
        all.dedup();
        for what in all {
            let columns = |rows: &[(&Row, u64, Figures)]| {
                let Some((row, share, figures)) = rows.iter().find(|(row, ..)| row.what == *what) else {
                    return if rows.is_empty() { " ".repeat(25) } else { format!("{UNKNOWN:>9}{:16}", "") };
                };
                let hits = row.hits.map(|hits| figures.count(hits)).unwrap_or_default();
                let share = figures.text(&number_format::hundredths(*share));
                format!("{:>9}{share:>8}{hits:>8}", figures.time(row.ns))
            };
            let one = format!(
                "  {}{}   {}",
                fit(&what.label(unit[0].is_cluster()), NAME - 2),
                columns(&requested),
                columns(&effective)
            );
            line!(text, "{}", one.trim_end());
        }
    }
}
