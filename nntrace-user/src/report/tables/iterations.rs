//! Iterations by function, and the slowest of them, as tables.

use crate::report::{
    incomplete_figures::Figures,
    number_format,
    snapshot::{IterationFunctionRow, IterationRow, Snapshot},
    terminal_text::{Text, line},
};

/// Adds what the iterations of each function add up to; nothing where there are none.
pub(super) fn summary(text: &mut Text, snapshot: &Snapshot) {
    if snapshot.iterations.is_empty() {
        return;
    }
    let figures = Figures::under(snapshot, "iterations");
    line!(
        text,
        "{:<22}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "iterations of",
        "count",
        "mean",
        "least",
        "most",
        "wall",
        "missing"
    );
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| figures.time(ns));
    for row in &snapshot.iterations {
        line!(
            text,
            "  {:<20}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}{}",
            row.name,
            figures.count(row.count),
            time(row.mean_ns),
            time(row.min_ns),
            time(row.max_ns),
            time(row.wall_ns.checked_div(row.count)),
            time(row.missing_ns.checked_div(row.count)),
            open(row),
        );
    }
}

fn open(row: &IterationRow) -> String {
    match row.open {
        0 => String::new(),
        open => format!("  (and {} not ended)", number_format::count(open)),
    }
}

/// The iterations of each function, and the slowest of them one by one, with what was done in them.
#[must_use]
pub fn iterations(snapshot: &Snapshot) -> Text {
    let (mut text, figures) = (Text::new(), Figures::under(snapshot, "iterations"));
    if snapshot.iterations.is_empty() {
        line!(
            text,
            "no section carries an iteration (#iter=); --iteration-root NAME numbers a function's own"
        );
    }
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| figures.time(ns));
    for row in &snapshot.iterations {
        line!(
            text,
            "{}: {}, mean {}, p50 {}, p90 {}, p99 {}, {} to {}{}",
            row.name,
            figures.plural(row.count, "iteration"),
            time(row.mean_ns),
            time(row.p50_ns),
            time(row.p90_ns),
            time(row.p99_ns),
            time(row.min_ns),
            time(row.max_ns),
            open(row),
        );
        functions(&mut text, figures, &row.functions);
        for slow in &row.slowest {
            let parent = slow
                .parent
                .as_ref()
                .map_or_else(String::new, |parent| format!(" in {} {}", parent.name, parent.iter));
            line!(
                text,
                "{} {}{parent}: {}, wall {}, missing {} ({})",
                row.name,
                slow.iter,
                figures.time(slow.total_ns),
                figures.time(slow.wall_ns),
                figures.time(slow.missing_ns),
                figures.percent(slow.missing_ns, slow.total_ns),
            );
            functions(&mut text, figures, &slow.functions);
        }
        let shown = row.slowest.len() as u64;
        if shown < row.count {
            line!(
                text,
                "these are the slowest {shown} of {}; --slowest N shows more, `export -o FOLDER.parquet` has all",
                figures.count(row.count),
            );
        }
    }
    text
}

fn functions(text: &mut Text, figures: Figures, rows: &[IterationFunctionRow]) {
    for row in rows {
        line!(
            text,
            "  {:<12}{:<15}{:>8}{:>9}{:>10}{:>9}  {}",
            row.site.layer.name(),
            row.site.phase.name(),
            figures.count(row.count),
            figures.time(row.total_ns),
            figures.time(row.exclusive_ns),
            figures.time(row.wall_ns),
            row.site.name,
        );
    }
}
