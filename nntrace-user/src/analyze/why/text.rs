//! Answers as text for people.

use super::answer::{Answer, Group};
use crate::report::{
    number_format::{count, duration_ns, percent, plural},
    terminal_text::{Text, line},
};

/// Parts that are shown at most.
const MOST_PARTS: usize = 12;
/// Parts of the difference of which a part is shown.
const LEAST_SHARE: u64 = 200;

impl Answer {
    /// Returns a table for people.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        let reason = match self.chosen {
            "iterations" => ", whose sections are iterations",
            "longest" => ", which takes most time",
            _ => "",
        };
        let executions = plural(self.executions as u64, "execution");
        line!(text, "why {}{reason}: {executions}", self.function);
        for (name, group) in [("slow", &self.slow), ("typical", &self.typical)] {
            let Group { count: number, mean_ns, shortest_ns, longest_ns } = *group;
            line!(
                text,
                "  {name:<8}{:>8}{:>10} on average, {} to {}",
                count(number as u64),
                duration_ns(mean_ns),
                duration_ns(shortest_ns),
                duration_ns(longest_ns)
            );
        }
        let whole = self.difference_ns.unsigned_abs();
        line!(text, "  {:>10}{:>8}  {:<10}because of", "longer by", "share", "certainty");
        let is_shown = |ns: i64| ns.unsigned_abs().saturating_mul(LEAST_SHARE) >= whole;
        let shown = self.parts.iter().filter(|row| is_shown(row.ns)).count().min(MOST_PARTS);
        let sign = |ns: i64| if ns < 0 { "-" } else { "" };
        let length = |ns: i64| format!("{}{}", sign(ns), duration_ns(ns.unsigned_abs()));
        let share = |ns: i64| match percent(ns.unsigned_abs(), whole) {
            small if small.starts_with('<') => small,
            share => format!("{}{share}", sign(ns)),
        };
        for row in &self.parts[..shown] {
            let certainty = row.description.certainty.name();
            line!(
                text,
                "  {:>10}{:>8}  {certainty:<10}{}",
                length(row.ns),
                share(row.ns),
                row.description.text
            );
        }
        let rest = &self.parts[shown..];
        if !rest.is_empty() {
            let ns: i64 = rest.iter().map(|row| row.ns).sum();
            line!(
                text,
                "  {:>10}{:>8}  {:<10}smaller parts ({}): --json has them",
                length(ns),
                share(ns),
                "",
                count(rest.len() as u64)
            );
        }
        line!(text, "  {:>10}{:>8}  in all", length(self.difference_ns), share(self.difference_ns));
        for note in &self.notes {
            line!(text, "note: {note}");
        }
        text
    }
}
