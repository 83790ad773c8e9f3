//! A comparison as text for people.

use super::{
    comparison::{Comparison, Row},
    shown, values,
};
use crate::{
    model::plurals::one_or_many,
    report::{
        number_format::{self, UNKNOWN},
        power::fit,
        terminal_text::{Text, line},
    },
};

/// Width of the names at most, columns.
const NAME: usize = 40;

/// Adds the comparison to a text; all figures, or those that matter.
pub(super) fn render(text: &mut Text, comparison: &Comparison, with_all: bool) {
    for (side, runs) in [("before", &comparison.before), ("after", &comparison.after)] {
        line!(text, "{side:<8}{}", self::runs(runs));
    }
    for line in values::method(comparison) {
        line!(text, "{line}");
    }
    for note in &comparison.notes {
        line!(text, "note: {note}");
    }
    let (sections, hidden) = shown::sections(comparison, with_all);
    let names = sections.iter().flat_map(|section| &section.rows).map(|row| row.name.chars().count());
    let width = names.max().unwrap_or(0).min(NAME) + 2;
    for section in sections {
        line!(
            text,
            "{:<width$}{:>9}{:>10}{:>9}  {:<20}{:>6}  verdict",
            section.title,
            "before",
            "after",
            "change",
            "interval",
            "d"
        );
        for row in section.rows {
            line!(text, "{}", one(comparison, row, width));
        }
    }
    if hidden > 0 {
        let hidden = hidden as u64;
        let them = one_or_many(hidden, "it", "them");
        line!(text, "{}: --all shows {them}", number_format::plural(hidden, "more figure"));
    }
    line!(text, "{}", values::summary(comparison));
    for culprit in values::culprits(comparison) {
        line!(text, "worse: {culprit}");
    }
}

fn one(comparison: &Comparison, row: &Row, width: usize) -> String {
    let mark = if row.is_incomplete { "~" } else { "" };
    let line = format!(
        "  {}{:>9}{:>10}{:>9}  {:<20}{:>6}  {}",
        fit(&row.name, width - 2),
        format!("{mark}{}", values::value(row.before.median, row.unit)),
        format!("{mark}{}", values::value(row.after.median, row.unit)),
        values::change(row),
        values::interval(row).unwrap_or_else(|| UNKNOWN.into()),
        row.delta.map_or_else(|| UNKNOWN.into(), |delta| format!("{delta:+.2}")),
        values::verdict(comparison, row),
    );
    line.trim_end().into()
}

/// Returns how many runs there are, and the first and last of their names.
pub(super) fn runs(names: &[String]) -> String {
    match names {
        [] => "no run".into(),
        [one] => format!("1 run: {one}"),
        [first, .., last] => format!("{} runs: {first} .. {last}", names.len()),
    }
}
