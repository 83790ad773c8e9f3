//! A comparison in Markdown, for a pull request.
//!
//! Names come from programs under test: as code, with the pipes of tables escaped, none of them is markup, a mention or a
//! link.

use std::fmt::Write as _;

use super::{
    comparison::{Comparison, Row},
    shown, table,
    threshold::Outcome,
    values,
};
use crate::report::{number_format::UNKNOWN, terminal_text::clean};

/// Renders the comparison.
pub(super) fn render(comparison: &Comparison, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |line: std::fmt::Arguments<'_>| _ = writeln!(text, "{line}");
    line(format_args!("## nntrace-bpf diff: {}\n", values::summary(comparison)));
    if !outcomes.is_empty() {
        line(format_args!("| threshold | outcome | figures |\n| --- | --- | --- |"));
        for outcome in outcomes {
            let figures: Vec<String> = outcome.figures.iter().map(|figure| code(figure)).collect();
            let word = if outcome.is_tripped { "**exceeded**" } else { "not exceeded" };
            line(format_args!("| {} | {word} | {} |", code(&outcome.threshold), figures.join("<br>")));
        }
        line(format_args!(""));
    }
    let (sections, _) = shown::sections(comparison, false);
    let found: Vec<&Row> = comparison.metrics.iter().filter(|row| shown::is_found(row)).collect();
    if !found.is_empty() {
        line(format_args!("{HEAD}"));
        for found in found {
            line(format_args!("{}", row(comparison, found)));
        }
        line(format_args!(""));
    }
    for (side, runs) in [("before", &comparison.before), ("after", &comparison.after)] {
        line(format_args!("- {side}: {}", code(&table::runs(runs))));
    }
    for method in values::method(comparison) {
        line(format_args!("- {method}"));
    }
    for note in &comparison.notes {
        line(format_args!("- note: {}", code(note)));
    }
    for section in sections {
        line(format_args!("\n<details><summary>{}</summary>\n\n{HEAD}", section.title));
        for shown in section.rows {
            line(format_args!("{}", row(comparison, shown)));
        }
        line(format_args!("\n</details>"));
    }
    text
}

const HEAD: &str = "\
| figure | before | after | change | interval | d | p, corrected | verdict |
| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |";

fn row(comparison: &Comparison, row: &Row) -> String {
    let mark = if row.is_incomplete { "~" } else { "" };
    format!(
        "| {} | {mark}{} | {mark}{} | {} | {} | {} | {} | {} |",
        code(&row.name),
        values::value(row.before.median, row.unit),
        values::value(row.after.median, row.unit),
        values::change(row),
        values::interval(row).unwrap_or_else(|| UNKNOWN.into()),
        row.delta.map_or_else(|| UNKNOWN.into(), |delta| format!("{delta:+.2}")),
        row.adjusted_p.map_or_else(|| UNKNOWN.into(), |p| format!("{p:.4}")),
        values::verdict(comparison, row),
    )
}

/// Returns text as code in a cell of a table: nothing in it is markup.
fn code(text: &str) -> String {
    let text = clean(text).replace('|', "\\|");
    // One more than the longest run of backticks in it.
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn names_are_code_and_nothing_else() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a``"), "``` `a`` ```");
        assert_eq!(code("a\n# b\x1b"), "`a\\n# b\\x1b`");
    }
}
