//! An answer in a line, for the tables of a run.

use super::{
    answer::{Answer, Row},
    describe::Certainty,
};
use crate::report::{
    number_format::{count, duration_ns, percent},
    power::fit,
    terminal_text::{Text, line},
};

/// Share by which slow executions take longer at least, percent of typical ones: less is no news.
const LEAST_LONGER: u64 = 10;
/// Width of the function's name at most, columns.
const NAME: usize = 40;

impl Answer {
    /// Returns the function.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Returns the largest part of the difference in a line that ends with where to find more; nothing where slow executions take
    /// hardly longer than typical ones, or without context switches, which tell running from waiting.
    #[must_use]
    pub fn line(&self, more: &str) -> Text {
        let mut text = Text::new();
        let longer = u64::try_from(self.difference_ns).unwrap_or(0);
        let Some((row, ns)) = self.largest().filter(|_| self.has_switches) else { return text };
        if u128::from(longer) * 100 < u128::from(self.typical.mean_ns) * u128::from(LEAST_LONGER) {
            return text;
        }
        let (slow, all) = (count(self.slow.count as u64), count(self.executions as u64));
        let certainty = match row.description.certainty {
            Certainty::Measured => String::new(),
            other => format!(", {}", other.name()),
        };
        let mean = if self.slow.count > 1 { " on average" } else { "" };
        line!(
            text,
            "why: the slowest {slow} of {all} {} took {} longer than typical ones{mean}; {} ({}{certainty}): {}; more: {more}",
            fit(&self.function, NAME).trim_end(),
            duration_ns(longer),
            duration_ns(ns),
            percent(ns, longer),
            row.description.text,
        );
        text
    }

    /// Returns the largest part that makes executions longer, and its length, ns.
    fn largest(&self) -> Option<(&Row, u64)> {
        self.parts.iter().find_map(|row| Some((row, u64::try_from(row.ns).ok().filter(|ns| *ns > 0)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::why::{
        answer::Group,
        describe::{Cause, Description},
    };

    /// Executions of which one took so much longer than typical ones of 20 ms, by these parts.
    fn answer(parts: &[(i64, Certainty, &str)]) -> Answer {
        let difference_ns = parts.iter().map(|(ns, ..)| ns).sum();
        let group = |count, ns| Group { count, mean_ns: ns, shortest_ns: ns, longest_ns: ns };
        let row = |&(ns, certainty, text): &(i64, Certainty, &str)| {
            let cause = Cause::HandOver;
            let description = Description { cause, certainty, text: text.into(), function: None, by: None };
            Row { ns, description }
        };
        let typical = group(3, 20_000_000);
        Answer {
            schema: "",
            schema_version: 1,
            function: "LR_PE:infer".into(),
            chosen: "longest",
            executions: 10,
            slow: group(1, typical.mean_ns.saturating_add_signed(difference_ns)),
            typical,
            difference_ns,
            parts: parts.iter().map(row).collect(),
            notes: Vec::new(),
            has_switches: true,
        }
    }

    #[test]
    fn the_largest_part_that_makes_it_longer_is_named() {
        let driver = "waited for LD_PE:execute of driver (22578) (hand-over)";
        let mut answer = answer(&[
            (120_000_000, Certainty::Measured, driver),
            (2_000_000, Certainty::Inferred, "more time on CPU in each call of LR_PE:infer"),
            (-1_000_000, Certainty::Unknown, "asleep"),
        ]);
        assert_eq!(
            answer.line("nntrace-bpf why run1"),
            "why: the slowest 1 of 10 LR_PE:infer took 121 ms longer than typical ones; 120 ms (99.2%): waited for LD_PE:execute of \
             driver (22578) (hand-over); more: nntrace-bpf why run1\n"
        );
        answer.slow.count = 2;
        answer.parts.remove(0);
        let line = answer.line("x");
        assert!(line.contains("slowest 2 of 10"), "{line}");
        assert!(line.contains("typical ones on average; 2.00 ms (1.7%, inferred): more time"), "{line}");
    }

    #[test]
    fn what_is_hardly_longer_is_no_news() {
        for (ns, has_line) in [(2_000_000, true), (1_999_999, false), (0, false), (-30_000_000, false)] {
            let line = answer(&[(ns, Certainty::Unknown, "asleep")]).line("x");
            assert_eq!(!line.is_empty(), has_line, "{ns}: {line}");
        }
        let unknown = Answer { has_switches: false, ..answer(&[(9_000_000, Certainty::Unknown, "asleep")]) };
        assert_eq!(unknown.line("x"), "");
    }
}
