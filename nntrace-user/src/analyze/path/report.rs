//! Latency and rate of a path, as a table, CSV and JSON.

use serde::Serialize;

use super::{
    PathCollector,
    find::{Finder, Walk},
};
use crate::{
    model::Findings,
    report::{
        number_format::{count, duration_ns, plural},
        power::cell,
        terminal_text::{Text, clean, line},
    },
};

/// Deviation of the times between begins from their median up to which they are periodic, percent.
const PERIODIC: u64 = 20;
/// Begins from which on it is known whether they are periodic.
const FEWEST: usize = 5;

/// Latency and rate of a path. Times are ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathReport {
    /// Path.
    path: String,
    /// Sections of the first function.
    begun: usize,
    /// Sections of the first function from which the path was followed to its end.
    completed: usize,
    /// Times from the start of the first function to the end of the last.
    latency: Option<Times>,
    /// Completed walks in a million seconds, from the first begin to the last end: the rate, Hz, times a million.
    rate_uhz: Option<u64>,
    /// Median time between two begins, where these are periodic.
    period_ns: Option<u64>,
    /// Latency that is allowed: as asked for, else the period.
    deadline_ns: Option<u64>,
    /// Whether the deadline was not asked for.
    deadline_is_inferred: bool,
    /// Walks that took longer, or had not ended by then.
    missed: Option<usize>,
    /// Times from the start of each function to the start of the next one, and the last one's length.
    steps: Vec<StepRow>,
    /// Evidence of the hand-overs that were followed.
    evidence: Vec<&'static str>,
}

/// Times of some walks, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Times {
    #[serde(rename = "min_ns")]
    min: u64,
    #[serde(rename = "p50_ns")]
    p50: u64,
    #[serde(rename = "p95_ns")]
    p95: u64,
    #[serde(rename = "p99_ns")]
    p99: u64,
    #[serde(rename = "max_ns")]
    max: u64,
}

/// Step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct StepRow {
    /// Function.
    function: String,
    /// Function that the time is until the begin of; null for the last one, whose length it is.
    next: Option<String>,
    /// Walks that have it.
    count: usize,
    /// Times.
    times: Option<Times>,
}

impl Times {
    /// Returns the times of walks, by nearest rank; `None` of none.
    fn of(mut all: Vec<u64>) -> Option<Self> {
        all.sort_unstable();
        let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).max(1) - 1).copied();
        Some(Self { min: *all.first()?, p50: rank(50)?, p95: rank(95)?, p99: rank(99)?, max: *all.last()? })
    }
}

impl PathReport {
    /// Follows the path from every section of its first function. Without a deadline (ns) it is the period of these, where they
    /// are periodic.
    ///
    /// # Errors
    /// With the reason, when there were more sections than there is room for, or a function has none.
    pub fn new(
        collector: &PathCollector,
        findings: &Findings<'_>,
        deadline: Option<u64>,
    ) -> Result<Self, String> {
        let (path, steps) = collector.finish()?;
        for (place, name) in path.0.iter().enumerate() {
            if !steps.values().flatten().any(|step| step.place == place) {
                return Err(format!(
                    "the run has no section of a function {name}: `report` lists its functions"
                ));
            }
        }
        let hand_overs = findings.marks.causality.hand_overs.as_ref().map(|all| all.results().list);
        let mut finder = Finder::new(steps, hand_overs.into_iter().flatten());
        let walks = finder.walks(path.0.len());
        let evidence = finder.followed.iter().map(|source| source.name()).collect();
        Ok(Self::of_walks(&path.0, &walks, deadline, findings.run.window.end_ns, evidence))
    }

    pub(super) fn of_walks(
        names: &[String],
        walks: &[Walk],
        deadline: Option<u64>,
        window_end: u64,
        evidence: Vec<&'static str>,
    ) -> Self {
        let end = |walk: &Walk| walk.steps.get(names.len() - 1).map(|(_, end)| *end);
        let latency = |walk: &Walk| end(walk).map(|end| end.saturating_sub(walk.begin));
        let latencies: Vec<u64> = walks.iter().filter_map(latency).collect();
        let span = walks.iter().filter_map(end).max().zip(walks.first());
        let span = span.map(|(last, first)| last.saturating_sub(first.begin)).filter(|ns| *ns > 0);
        let rate = span.map(|ns| latencies.len() as u128 * 1_000_000_000_000_000 / u128::from(ns));
        let period_ns = period(walks);
        let deadline_ns = deadline.or(period_ns);
        let missed = deadline_ns.map(|most| {
            let is_late = |walk: &&Walk| match latency(walk) {
                Some(ns) => ns > most,
                None => walk.begin.saturating_add(most) < window_end,
            };
            walks.iter().filter(is_late).count()
        });
        let steps = (0..names.len()).map(|place| {
            let times = walks.iter().filter_map(|walk| {
                let (begin, end) = *walk.steps.get(place)?;
                let until = if place + 1 == names.len() { end } else { walk.steps.get(place + 1)?.0 };
                Some(until.saturating_sub(begin))
            });
            let times: Vec<u64> = times.collect();
            StepRow {
                function: names[place].clone(),
                next: names.get(place + 1).cloned(),
                count: times.len(),
                times: Times::of(times),
            }
        });
        Self {
            path: names.join(">"),
            begun: walks.len(),
            completed: latencies.len(),
            rate_uhz: rate.and_then(|rate| u64::try_from(rate).ok()),
            latency: Times::of(latencies),
            period_ns,
            deadline_ns,
            deadline_is_inferred: deadline.is_none() && deadline_ns.is_some(),
            missed,
            steps: steps.collect(),
            evidence,
        }
    }

    /// Returns tables for people.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        line!(
            text,
            "path {}: {} of {} completed",
            self.path,
            count(self.completed as u64),
            count(self.begun as u64)
        );
        line!(
            text,
            "  {:<44}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "",
            "count",
            "min",
            "p50",
            "p95",
            "p99",
            "max"
        );
        let mut row = |name: &str, number: usize, times: Option<Times>| {
            let figures = times.map_or_else(
                || ["-"; 5].map(str::to_owned),
                |times| [times.min, times.p50, times.p95, times.p99, times.max].map(duration_ns),
            );
            let [min, p50, p95, p99, max] = figures;
            line!(
                text,
                "  {name:<44}{:>8}{min:>10}{p50:>10}{p95:>10}{p99:>10}{max:>10}",
                count(number as u64)
            );
        };
        row("end to end", self.completed, self.latency);
        for step in &self.steps {
            let name = match &step.next {
                Some(next) => format!("{} to {next}", step.function),
                None => format!("{} itself", step.function),
            };
            row(&clean(&name), step.count, step.times);
        }
        if let Some(rate) = self.rate_uhz {
            line!(text, "  {:.3} a second", rate as f64 / 1e6);
        }
        if let Some(period) = self.period_ns {
            line!(text, "  begun every {} (median)", duration_ns(period));
        }
        if let (Some(deadline), Some(missed)) = (self.deadline_ns, self.missed) {
            let source = if self.deadline_is_inferred { ", inferred from the period" } else { "" };
            line!(
                text,
                "  deadline of {}{source}: missed {}",
                duration_ns(deadline),
                plural(missed as u64, "time")
            );
        }
        if !self.evidence.is_empty() {
            line!(text, "  hand-overs by {}", self.evidence.join(", "));
        }
        text
    }

    /// Returns a row for the whole path, and one for each step.
    ///
    /// # Errors
    /// When it cannot be written as CSV.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["from", "to", "count", "min_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"])?;
        let mut row = |from: &str, to: &str, number: usize, times: Option<Times>| {
            let of = |get: fn(&Times) -> u64| {
                times.as_ref().map_or_else(String::new, |times| get(times).to_string())
            };
            writer.write_record([
                &*cell(&clean(from)),
                &*cell(&clean(to)),
                &number.to_string(),
                &of(|times| times.min),
                &of(|times| times.p50),
                &of(|times| times.p95),
                &of(|times| times.p99),
                &of(|times| times.max),
            ])
        };
        row(&self.path, "", self.completed, self.latency)?;
        for step in &self.steps {
            row(&step.function, step.next.as_deref().unwrap_or_default(), step.count, step.times)?;
        }
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Returns the median time between two begins, ns, if most are near it.
fn period(walks: &[Walk]) -> Option<u64> {
    let mut times: Vec<u64> = walks.windows(2).map(|pair| pair[1].begin - pair[0].begin).collect();
    if times.len() + 1 < FEWEST {
        return None;
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    let mut deviations: Vec<u64> = times.iter().map(|ns| ns.abs_diff(median)).collect();
    deviations.sort_unstable();
    (deviations[deviations.len() / 2] * 100 <= median * PERIODIC).then_some(median)
}
