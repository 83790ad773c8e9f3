//! Accounts, hand-overs and what is missing, as tables.

use std::fmt::Write as _;

use super::iterations;
use crate::report::{
    incomplete_figures::Figures,
    snapshot::{AccountRow, ExplanationRow, Snapshot},
    terminal_text::{Text, line},
};

/// Adds the sums of iterations, accounts and hand-overs; nothing where marks carry none.
pub(super) fn summary(text: &mut Text, snapshot: &Snapshot) {
    accounts(text, &snapshot.accounts, Figures::under(snapshot, "accounts"));
    groups(text, snapshot);
    iterations::summary(text, snapshot);
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
            "{}, {} taken{unmatched}",
            figures.plural(counts.sent, "hand-over"),
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
        "{} ran {}, {mean} on average, standard deviation {deviation}; of its variance is due to",
        row.function,
        figures.plural(row.count, "time"),
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
