//! Answers as text for people.

use super::{
    answer::{Answer, Confidence, Figure},
    selection::factor,
};
use crate::{
    model::plurals::{counted, one_or_many},
    report::{
        number_format::{count, duration_ns, khz, percent, plural},
        power::fit,
        terminal_text::{Text, line},
    },
};

/// Parts of the critical path that are shown at most.
const MOST_PARTS: usize = 10;
/// Width of names at most, columns.
const NAME: usize = 40;

impl Answer {
    /// Returns tables for people.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        self.head(&mut text);
        self.figures(&mut text);
        self.ranks(&mut text);
        self.path(&mut text);
        line!(text, "confidence: {}", self.evidence());
        for assumption in &self.assumptions {
            line!(text, "assumed: {assumption}");
        }
        for violated in &self.violated {
            line!(text, "in doubt: {violated}");
        }
        text
    }

    fn head(&self, text: &mut Text) {
        let speeds = self.speeds.iter().map(|speed| {
            let functions =
                if speed.functions > 1 { format!(" ({} functions)", speed.functions) } else { String::new() };
            format!("{} {}{functions}", speed.name, factor(speed.factor.unwrap_or(f64::INFINITY)))
        });
        let frequencies =
            self.frequencies.iter().map(|(cluster, value)| format!("{cluster} at {}", khz(*value)));
        let all: Vec<String> = speeds.chain(frequencies).collect();
        if !all.is_empty() {
            line!(text, "what if: {}", all.join(", "));
        }
        let threads = self.threads as u64;
        let cpus = self.cpus.map_or_else(
            || one_or_many(threads, "a CPU for it", "as many CPUs").to_owned(),
            |cpus| counted(cpus.into(), "CPU"),
        );
        line!(text, "{}, {cpus}", counted(threads, "thread"));
    }

    fn figures(&self, text: &mut Text) {
        let has_model = (self.makespan_ns.modelled - self.makespan_ns.recorded).abs() >= 0.5;
        let modelled = if has_model { format!("{:>12}", "modelled") } else { String::new() };
        line!(text, "{:<24}{:>10}{modelled}{:>12}{:>10}", "", "recorded", "predicted", "change");
        let mut row = |name: &str, figure: &Figure, show: fn(f64) -> String| {
            let modelled = if has_model { format!("{:>12}", show(figure.modelled)) } else { String::new() };
            line!(
                text,
                "{name:<24}{:>10}{modelled}{:>12}{:>10}",
                show(figure.recorded),
                show(figure.predicted),
                share(figure.change)
            );
        };
        row("makespan", &self.makespan_ns, nanoseconds);
        if let Some(iterations) = &self.iterations {
            row("latency p50", &iterations.p50_ns, nanoseconds);
            row("latency p95", &iterations.p95_ns, nanoseconds);
            row("iterations a second", &iterations.per_second, rate);
        }
        let (low, high) = self.interval_ns;
        line!(text, "makespan by latencies of hand-overs: {} to {}", duration_ns(low), duration_ns(high));
        if let Some(iterations) = &self.iterations {
            line!(text, "{}", plural(iterations.count as u64, "iteration"));
        } else {
            line!(
                text,
                "no section is an iteration: #iter= in marks, or --iteration-root, would give latencies"
            );
        }
        for point in &self.curve {
            let name =
                point.factor.map_or_else(|| "bound".into(), |value| format!("all at {}", factor(value)));
            line!(text, "  {name:<22}{:>10}{:>10}", duration_ns(point.makespan_ns), share(point.change));
        }
    }

    fn ranks(&self, text: &mut Text) {
        let Some(first) = self.ranking.first() else { return };
        let names = self.ranking.iter().map(|row| row.name.chars().count());
        let width = names.max().unwrap_or(0).min(NAME) + 2;
        line!(text, "{:<width$}{:>10}{:>10}{:>10}{:>10}", "  speed up", "work", "path", "at 2x", "bound");
        for row in &self.ranking {
            line!(
                text,
                "  {}{:>10}{:>10}{:>10}{:>10}",
                fit(&row.name, width - 2),
                duration_ns(row.work_ns),
                duration_ns(row.path_ns),
                share(row.twice),
                share(row.bound)
            );
        }
        if first.twice < 0.0 {
            line!(
                text,
                "first: {}: twice as fast, the makespan changes by {}",
                first.name,
                share(first.twice)
            );
        } else {
            line!(text, "first: nothing: no function alone makes the makespan shorter");
        }
    }

    fn path(&self, text: &mut Text) {
        let names = self.critical_path.iter().map(|part| part.name.chars().count());
        let width = names.max().unwrap_or(0).clamp(13, NAME) + 2;
        line!(text, "{:<width$}{:>10}{:>8}{:>12}{:>8}", "  critical path", "before", "", "predicted", "");
        let sum =
            |part: fn(&super::answer::PathPart) -> u64| self.critical_path.iter().map(part).sum::<u64>();
        let (before, after) = (sum(|part| part.modelled_ns), sum(|part| part.predicted_ns));
        for part in self.critical_path.iter().take(MOST_PARTS) {
            line!(
                text,
                "  {}{:>10}{:>8}{:>12}{:>8}",
                fit(&part.name, width - 2),
                duration_ns(part.modelled_ns),
                percent(part.modelled_ns, before),
                duration_ns(part.predicted_ns),
                percent(part.predicted_ns, after)
            );
        }
        let more = self.critical_path.len().saturating_sub(MOST_PARTS);
        if more > 0 {
            line!(text, "  {}: --json has all", plural(more as u64, "shorter part"));
        }
    }

    fn evidence(&self) -> String {
        let word = match self.confidence {
            Confidence::Explicit => "explicit",
            Confidence::Mixed => "mixed",
            Confidence::Inferred => "inferred",
        };
        let edges: Vec<String> = self
            .edges
            .iter()
            .map(|edges| format!("{} {} {}", count(edges.count), edges.trust, edges.kind))
            .collect();
        if edges.is_empty() {
            format!("{word}: no edge between threads")
        } else {
            format!("{word}: {}", edges.join(", "))
        }
    }
}

/// Formats a time that is not negative, ns.
fn nanoseconds(ns: f64) -> String {
    #[expect(clippy::cast_sign_loss, reason = "times are not negative")]
    let ns = ns.round() as u64;
    duration_ns(ns)
}

fn rate(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.2}") } else { format!("{rate:.0}") }
}

/// Formats a change.
fn share(change: f64) -> String {
    let percent = change * 100.0;
    // No sign for nothing.
    if percent.abs() < 0.05 { "0.0%".into() } else { format!("{percent:+.1}%") }
}
