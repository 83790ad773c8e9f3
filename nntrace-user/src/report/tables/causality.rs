//! Iterations, accounts and what is missing, as tables.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::report::{
    incomplete_figures::Figures,
    number_format,
    snapshot::{AccountRow, ExplanationRow, IterationRow, Snapshot},
    terminal_text::{Text, line},
};

/// Adds the sums of iterations, accounts and hand-overs; nothing where marks carry none.
pub(super) fn summary(text: &mut Text, snapshot: &Snapshot) {
    accounts(text, &snapshot.accounts, Figures::under(snapshot, "accounts"));
    groups(text, snapshot);
    by_name(text, &snapshot.iterations, Figures::under(snapshot, "iterations"));
    missing(text, snapshot);
    if let Some(explanation) = &snapshot.explanation {
        explain(text, explanation, Figures::under(snapshot, "explanation"));
    }
    if let Some(counts) = &snapshot.hand_overs {
        let figures = Figures::under(snapshot, "hand_overs");
        let unmatched = match counts.unmatched {
            0 => String::new(),
            unmatched => format!(", {} taken that nobody had handed over", figures.count(unmatched)),
        };
        line!(
            text,
            "{} hand-overs, {} taken{unmatched}",
            figures.count(counts.sent),
            figures.count(counts.received)
        );
    }
}

fn accounts(text: &mut Text, accounts: &[AccountRow], figures: Figures) {
    if accounts.is_empty() {
        return;
    }
    line!(
        text,
        "{:<22}{:>8}{:>10}{:>10}{:>10}{:>12}{:>10}",
        "account",
        "count",
        "time",
        "explicit",
        "nested",
        "handed over",
        "created"
    );
    for row in accounts {
        let edge = |ns: u64| if ns == 0 { "-".into() } else { figures.time(ns) };
        line!(
            text,
            "  {:<20}{:>8}{:>10}{:>10}{:>10}{:>12}{:>10}",
            row.account.as_deref().unwrap_or("(nobody's)"),
            figures.count(row.count),
            figures.time(row.exclusive_ns),
            edge(row.explicit_ns),
            edge(row.nested_ns),
            edge(row.handed_over_ns),
            edge(row.created_ns),
        );
    }
}

fn groups(text: &mut Text, snapshot: &Snapshot) {
    let Some(first) = snapshot.groups.first() else { return };
    let figures = Figures::under(snapshot, "groups");
    line!(text, "{:<30}{:>8}{:>10}{:>10}{:>10}  function", first.key, "count", "total", "exclusive", "max");
    for row in &snapshot.groups {
        line!(
            text,
            "  {:<28}{:>8}{:>10}{:>10}{:>10}  {}",
            row.value,
            figures.count(row.count),
            figures.time(row.total_ns),
            figures.time(row.exclusive_ns),
            figures.time(row.max_ns),
            row.site.name,
        );
    }
}

/// Iterations of each function together.
fn by_name(text: &mut Text, iterations: &[IterationRow], figures: Figures) {
    let mut functions: BTreeMap<(u32, &str), Vec<&IterationRow>> = BTreeMap::new();
    for row in iterations {
        functions.entry((row.pid, &row.name)).or_default().push(row);
    }
    if functions.is_empty() {
        return;
    }
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
    for ((_, name), rows) in functions {
        let (ended, open): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.open == 0);
        let count = ended.len() as u64;
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| figures.time(ns));
        let mean = |of: fn(&IterationRow) -> u64| {
            let sum: u64 = ended.iter().map(|row| of(row)).sum();
            time(sum.checked_div(count))
        };
        let open = if open.is_empty() {
            String::new()
        } else {
            format!("  (and {} not ended)", number_format::count(open.len() as u64))
        };
        line!(
            text,
            "  {name:<20}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}{open}",
            figures.count(count),
            mean(|row| row.total_ns),
            time(ended.iter().map(|row| row.total_ns).min()),
            time(ended.iter().map(|row| row.total_ns).max()),
            mean(|row| row.wall_ns),
            mean(|row| row.missing_ns),
        );
    }
}

fn missing(text: &mut Text, snapshot: &Snapshot) {
    if snapshot.missing.is_empty() {
        return;
    }
    let figures = Figures::under(snapshot, "missing");
    let states = if snapshot.missing.iter().any(|row| row.states.is_some()) {
        format!("{:>10}{:>10}{:>10}{:>10}", "on CPU", "runnable", "sleeping", "unknown")
    } else {
        String::new()
    };
    line!(
        text,
        "{:<22}{:>8}{:>10}{:>10}{:>8}{:>10}{states}",
        "missing time in",
        "count",
        "total",
        "missing",
        "share",
        "most"
    );
    for row in &snapshot.missing {
        let mut states = String::new();
        if let Some(row) = &row.states {
            let slept = row.sleeping_ns + row.uninterruptible_ns;
            for ns in [row.on_cpu_ns, row.runnable_ns, slept, row.unknown_ns] {
                // Writing to a string cannot fail.
                let _ = write!(states, "{:>10}", figures.time(ns));
            }
        }
        line!(
            text,
            "  {:<20}{:>8}{:>10}{:>10}{:>8}{:>10}{states}",
            row.site.name,
            figures.count(row.count),
            figures.time(row.total_ns),
            figures.time(row.missing_ns),
            figures.percent(row.missing_ns, row.total_ns),
            figures.time(row.max_missing_ns),
        );
    }
}

fn explain(text: &mut Text, row: &ExplanationRow, figures: Figures) {
    if row.count == 0 {
        line!(text, "{} did not run: nothing to explain", row.function);
        return;
    }
    #[expect(clippy::cast_sign_loss, reason = "means and deviations of times")]
    let time = |ns: f64| figures.time(ns.round() as u64);
    let (mean, deviation) = (time(row.mean_ns), time(row.variance.sqrt()));
    line!(
        text,
        "{} ran {} times, {mean} on average, standard deviation {deviation}; of its variance is due to",
        row.function,
        figures.count(row.count),
    );
    line!(
        text,
        "  {:<20}{:>8}{:>12}{:>10}{:>14}{:>14}",
        "callee",
        "calls",
        "each time",
        "mean",
        "how often",
        "how long"
    );
    let share = |share: f64| figures.text(&format!("{:.1}%", share * 100.0));
    for callee in &row.callees {
        line!(
            text,
            "  {:<20}{:>8}{:>12}{:>10}{:>14}{:>14}",
            callee.name,
            figures.count(callee.calls),
            figures.text(&format!("{:.2}", callee.mean_calls)),
            time(callee.mean_ns),
            share(callee.how_often),
            share(callee.how_long),
        );
    }
}

/// Every iteration, with what was done in it.
#[must_use]
pub fn iterations(snapshot: &Snapshot) -> Text {
    let (mut text, figures) = (Text::new(), Figures::under(snapshot, "iterations"));
    if snapshot.iterations.is_empty() {
        line!(
            text,
            "no section carries an iteration (#iter=); --iteration-root NAME numbers a function's own"
        );
    }
    for row in &snapshot.iterations {
        let parent = row
            .parent
            .as_ref()
            .map_or_else(String::new, |parent| format!(" in {} {}", parent.name, parent.iter));
        let of_what = format!("{} {}{parent}", row.name, row.iter);
        if row.open > 0 {
            line!(text, "{of_what}: not ended");
        } else {
            line!(
                text,
                "{of_what}: {}, wall {}, missing {} ({})",
                figures.time(row.total_ns),
                figures.time(row.wall_ns),
                figures.time(row.missing_ns),
                figures.percent(row.missing_ns, row.total_ns),
            );
        }
        for function in &row.functions {
            line!(
                text,
                "  {:<12}{:<15}{:>8}{:>9}{:>10}{:>9}  {}",
                function.site.layer.name(),
                function.site.phase.name(),
                figures.count(function.count),
                figures.time(function.total_ns),
                figures.time(function.exclusive_ns),
                figures.time(function.wall_ns),
                function.site.name,
            );
        }
    }
    text
}
