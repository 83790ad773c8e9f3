//! A comparison with its thresholds, in every form.

use serde::Serialize;

use super::{
    comparison::{Comparison, Options},
    junit, markdown,
    runs::Run,
    table,
    threshold::{Outcome, Threshold},
};
use crate::report::terminal_text::{Text, line};

/// Changes between two groups of runs, and what thresholds make of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    #[serde(flatten)]
    comparison: Comparison,
    thresholds: Vec<Outcome>,
}

impl Diff {
    /// Compares two groups of runs.
    ///
    /// # Errors
    /// When a threshold cannot be checked, with the reason: a figure that no run has, or too few runs for a verdict.
    pub fn new(
        before: &[Run],
        after: &[Run],
        options: &Options,
        thresholds: &[Threshold],
    ) -> Result<Self, String> {
        let comparison = Comparison::new(before, after, options);
        let check = |threshold: &Threshold| threshold.check(&comparison);
        let thresholds = thresholds.iter().map(check).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { comparison, thresholds })
    }

    /// Whether a threshold is exceeded.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        self.thresholds.iter().any(|outcome| outcome.is_tripped)
    }

    /// Returns a table for people; of all figures, or of those that matter.
    #[must_use]
    pub fn text(&self, with_all: bool) -> Text {
        let mut text = Text::new();
        table::render(&mut text, &self.comparison, with_all);
        for outcome in &self.thresholds {
            let word = if outcome.is_tripped { "exceeded" } else { "not exceeded" };
            for figure in &outcome.figures {
                line!(text, "{word}: {}: {figure}", outcome.threshold);
            }
            if outcome.figures.is_empty() {
                line!(text, "{word}: {}", outcome.threshold);
            }
        }
        text
    }

    /// Returns a summary in Markdown, for a pull request.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::render(&self.comparison, &self.thresholds)
    }

    /// Returns JUnit XML: a case for each threshold and each phase.
    #[must_use]
    pub fn junit(&self) -> String {
        junit::render(&self.comparison, &self.thresholds)
    }
}
