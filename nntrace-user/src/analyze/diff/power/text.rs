//! Comparison of two runs as text for people, at most 80 columns wide.

use super::{Amount, Change, RowChange};
use crate::report::{
    cpu_or_cluster::CpuOrCluster,
    number_format::{self, UNKNOWN},
    power::{Measure, PowerTable, fit},
    snapshot::Snapshot,
    tables,
    terminal_text::{Text, line},
};

/// Width of the names, columns.
const NAME: usize = 24;

/// Renders the changes from `before` to `after` as text.
#[must_use]
pub fn render(before: &Snapshot, after: &Snapshot, table: PowerTable) -> Text {
    let mut text = Text::new();
    for (word, snapshot) in [("baseline", before), ("now", after)] {
        let window = number_format::duration_ns(snapshot.window.length_ns());
        let files = snapshot.source.files.join(", ");
        line!(text, "{word:<9}{window:>8}  {} {files}", snapshot.source.kind);
    }
    line!(text, "{UNKNOWN}: not there");
    line!(text, "{:NAME$}{:>26}  {:>27}", "", "------------- % of window", "----------- hits per second");
    line!(
        text,
        "{:NAME$}{:>8}{:>8}{:>10}  {:>9}{:>9}{:>9}",
        "",
        "baseline",
        "now",
        "change",
        "baseline",
        "now",
        "change"
    );
    for change in super::changes(before, after, table) {
        match change.measure {
            Measure::State | Measure::Concurrency => line!(text, "{}", change.title),
            Measure::Requested | Measure::Effective => {
                line!(text, "{}, {}", change.title, change.measure.name());
            }
        }
        let rows = change.rows.iter().filter(|row| !row.is_empty());
        rows.for_each(|row| line!(text, "{}", one(&change, row)));
    }
    text + &tables::losses_and_notes(after)
}

fn one(change: &Change, row: &RowChange) -> String {
    let share = |amount: Option<Amount>| {
        amount.map_or_else(|| UNKNOWN.to_owned(), |amount| number_format::hundredths(amount.share))
    };
    let counted =
        [row.before, row.after].into_iter().flatten().any(|amount| amount.hits_per_second.is_some());
    let rate = |amount: Option<Amount>| match amount.and_then(|amount| amount.hits_per_second) {
        Some(rate) => format!("{rate:.1}"),
        None if counted => UNKNOWN.to_owned(),
        None => String::new(),
    };
    let both = change.is_in_both();
    let rate_change = row.rate_change().filter(|_| both && counted);
    let line = format!(
        "  {}{:>8}{:>8}{:>10}  {:>9}{:>9}{:>9}",
        fit(&row.what.label(matches!(change.unit, CpuOrCluster::Cluster(_))), NAME - 2),
        share(row.before),
        share(row.after),
        if both { signed(row.share_change()) } else { UNKNOWN.into() },
        rate(row.before),
        rate(row.after),
        rate_change.map_or_else(
            || if counted { UNKNOWN.to_owned() } else { String::new() },
            |rate| format!("{rate:+.1}")
        ),
    );
    line.trim_end().into()
}

fn signed(hundredths: i64) -> String {
    let sign = if hundredths < 0 { '-' } else { '+' };
    format!("{sign}{}", number_format::hundredths(hundredths.unsigned_abs()))
}
