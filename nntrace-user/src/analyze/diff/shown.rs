//! Choice of the figures that are shown, in their order.

use super::comparison::{Comparison, Row, Verdict};
use super::metric::{Family, Subject};

/// Functions without a verdict that are shown at most: those that changed most.
const MOST_FUNCTIONS: usize = 10;
/// Figures of phases that are shown in any case.
const PHASE_FIGURES: [&str; 4] = ["mean", "exclusive_mean", "p99", "total"];

/// Whether a subject is of a kind.
type IsOf = fn(&Subject) -> bool;

/// Figures of one kind.
pub(super) struct Section<'a> {
    pub(super) title: &'static str,
    pub(super) rows: Vec<&'a Row>,
}

/// Returns the sections with anything in them, and how many figures are left out: those of which nothing was found, but
/// for the main ones.
pub(super) fn sections(comparison: &Comparison, with_all: bool) -> (Vec<Section<'_>>, usize) {
    let kinds: [(&str, IsOf); 5] = [
        ("phases", |subject| matches!(subject, Subject::Phase(_))),
        ("functions", |subject| *subject == Subject::Function),
        ("residency", |subject| *subject == Subject::Residency),
        ("energy", |subject| *subject == Subject::Energy),
        ("measured rails", |subject| *subject == Subject::Rail),
    ];
    let functions = if with_all { Vec::new() } else { main_functions(comparison) };
    let is_shown = |row: &&Row| {
        with_all || is_found(row) || is_main(row) || functions.iter().any(|name| **name == *row.name)
    };
    let section = |(title, is_of): (&'static str, IsOf)| Section {
        title,
        rows: comparison.metrics.iter().filter(|row| is_of(&row.subject)).filter(is_shown).collect(),
    };
    let sections: Vec<Section<'_>> =
        kinds.into_iter().map(section).filter(|section| !section.rows.is_empty()).collect();
    let shown: usize = sections.iter().map(|section| section.rows.len()).sum();
    (sections, comparison.metrics.len() - shown)
}

/// Whether a change was found.
pub(super) fn is_found(row: &Row) -> bool {
    matches!(row.verdict, Verdict::Worse | Verdict::Better | Verdict::More | Verdict::Less)
}

fn is_main(row: &Row) -> bool {
    if [row.before.median, row.after.median].iter().flatten().all(|median| *median == 0.0) {
        return false;
    }
    let figure = row.name.rsplit('.').next().unwrap_or_default();
    match row.subject {
        // Those that are not judged repeat the mean.
        Subject::Phase(_) => PHASE_FIGURES.contains(&figure) && row.family != Family::None,
        Subject::Function => false,
        Subject::Residency => figure == "active",
        Subject::Energy | Subject::Rail => row.family != Family::None,
    }
}

/// Returns the names of the own times of those functions whose sums of it changed most.
fn main_functions(comparison: &Comparison) -> Vec<String> {
    let totals = comparison.metrics.iter().filter(|row| row.subject == Subject::Function);
    let mut changes: Vec<(f64, String)> = totals
        .filter_map(|row| {
            let function = row.name.strip_suffix(".exclusive")?;
            Some((row.difference?.abs(), format!("{function}.exclusive_mean")))
        })
        .collect();
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    changes.into_iter().take(MOST_FUNCTIONS).map(|(_, name)| name).collect()
}
