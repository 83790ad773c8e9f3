//! A comparison as JUnit XML: a test case for each threshold and each phase.

use std::fmt::Write as _;

use nntrace_common::layer::Tag;

use super::{
    comparison::{Comparison, Row},
    metric::Subject,
    threshold::Outcome,
    values,
};
use crate::report::xml::escape;

/// Result of a case.
enum Case {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Renders the comparison.
pub(super) fn render(comparison: &Comparison, outcomes: &[Outcome]) -> String {
    let mut cases: Vec<(&str, String, Case)> = outcomes
        .iter()
        .map(|outcome| {
            let figures = outcome.figures.join("; ");
            let case = if outcome.is_tripped { Case::Failed(figures) } else { Case::Passed };
            ("threshold", outcome.threshold.clone(), case)
        })
        .collect();
    cases
        .extend(phases(comparison).into_iter().map(|tag| ("phase", tag.to_string(), phase(comparison, tag))));
    let count = |is_of: fn(&Case) -> bool| cases.iter().filter(|(.., case)| is_of(case)).count();
    let failures = count(|case| matches!(case, Case::Failed(_)));
    let skipped = count(|case| matches!(case, Case::Skipped(_)));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let mut line = |line: std::fmt::Arguments<'_>| _ = writeln!(text, "{line}");
    let counts = format!(r#"tests="{}" failures="{failures}" errors="0""#, cases.len());
    line(format_args!(r#"<testsuites name="nntrace-bpf diff" {counts}>"#));
    line(format_args!(r#"  <testsuite name="nntrace-bpf diff" {counts} skipped="{skipped}">"#));
    for (class, name, case) in &cases {
        let head = format!(r#"    <testcase classname="{class}" name="{}""#, escape(name));
        match case {
            Case::Passed => line(format_args!("{head}/>")),
            Case::Failed(message) => {
                let message = escape(message);
                line(format_args!(r#"{head}><failure message="{message}"/></testcase>"#));
            }
            Case::Skipped(message) => {
                let message = escape(message);
                line(format_args!(r#"{head}><skipped message="{message}"/></testcase>"#));
            }
        }
    }
    line(format_args!("  </testsuite>\n</testsuites>"));
    text
}

fn phases(comparison: &Comparison) -> Vec<Tag> {
    let mut tags: Vec<Tag> = comparison.metrics.iter().filter_map(tag).collect();
    tags.dedup();
    tags
}

const fn tag(row: &Row) -> Option<Tag> {
    match row.subject {
        Subject::Phase(tag) => Some(tag),
        _ => None,
    }
}

fn phase(comparison: &Comparison, wanted: Tag) -> Case {
    let worse = comparison.worse().filter(|row| tag(row) == Some(wanted));
    let worse: Vec<String> = worse
        .map(|row| format!("{}: {}", values::verdict(comparison, row), values::change_of(row)))
        .collect();
    if !worse.is_empty() {
        Case::Failed(worse.join("; "))
    } else if comparison.can_judge {
        Case::Passed
    } else {
        Case::Skipped(values::why_no_verdict(comparison))
    }
}
