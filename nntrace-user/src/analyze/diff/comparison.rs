//! Comparison of two groups of runs.

use serde::Serialize;

use super::{
    energy,
    metric::{Family, Metric, Per, Subject, Unit},
    phases, rails, residency,
    runs::{self, Run},
    statistics::{Bootstrap, Interval, cliffs_delta, holm, least_p_value, mann_whitney, median},
};
use crate::report::snapshot::Snapshot;

/// Value of [`Comparison::schema`].
const SCHEMA: &str = "nntrace-diff";
/// Value of [`Comparison::version`].
const VERSION: u32 = 1;
/// Share of the probability of a false alarm that phases have, where there are other tests, too.
const PHASES_SHARE: f64 = 0.8;
/// Runs of a side beyond which no number is named that would do.
const MOST_RUNS: usize = 1_000;

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Confidence of intervals, of 1; the rest is the probability of any false alarm.
    pub confidence: f64,
    /// Divisor of sums; `None`: executions where every run has some, else seconds.
    pub per: Option<Per>,
}

/// Changes between two groups of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Comparison {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    /// Confidence of intervals, of 1.
    pub(super) confidence: f64,
    /// Divisor of `count`, `total`, `exclusive` and energies.
    pub(super) per: Per,
    /// Names of the runs before.
    pub(super) before: Vec<String>,
    /// Names of the runs after.
    pub(super) after: Vec<String>,
    /// Whether there are enough runs for a verdict on phases.
    pub(super) can_judge: bool,
    /// Runs of each side from which on there can be one; null where no number would do.
    pub(super) needed_runs: Option<usize>,
    /// Notes for people: what differs besides, and what is not compared for which reason.
    pub(super) notes: Vec<String>,
    /// Figures.
    pub(super) metrics: Vec<Row>,
}

/// Change of one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) subject: Subject,
    pub(super) unit: Unit,
    pub(super) family: Family,
    /// Whether it lacks what was lost in a run.
    pub(super) is_incomplete: bool,
    pub(super) before: Group,
    pub(super) after: Group,
    /// Difference of the medians, in the unit.
    pub(super) difference: Option<f64>,
    /// Difference as a share of the size of the median before; null where that is 0.
    pub(super) change: Option<f64>,
    /// Interval of `change`, or of `difference` where the unit is a share.
    pub(super) interval: Option<Interval>,
    /// Cliff's delta.
    pub(super) delta: Option<f64>,
    /// Probability of ranks so far apart without any change.
    pub(super) p: Option<f64>,
    /// Probability `p`, corrected for the number of tests.
    pub(super) adjusted_p: Option<f64>,
    pub(super) verdict: Verdict,
}

/// Values of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Group {
    /// Median; null when no run has a value.
    pub(super) median: Option<f64>,
    /// Value of each run; null where it has none.
    pub(super) runs: Vec<Option<f64>>,
}

/// Verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It costs more.
    Worse,
    /// It costs less.
    Better,
    /// There is more of it, which is neither good nor bad.
    More,
    /// There is less of it.
    Less,
    /// No change was found.
    NoneFound,
    /// There are too few runs for any verdict.
    TooFewRuns,
    /// Something was lost in a run: nothing is inferred.
    Incomplete,
    /// It is shown only.
    NotJudged,
}

impl Group {
    fn new(values: &[Option<f64>]) -> Self {
        Self { median: median(&known(values)), runs: values.to_vec() }
    }
}

impl Comparison {
    /// Compares two groups of runs.
    pub(super) fn new(before: &[Run], after: &[Run], options: &Options) -> Self {
        let all = || before.iter().chain(after);
        let snapshots: Vec<&Snapshot> = all().map(|run| &run.snapshot).collect();
        let names: Vec<&str> = all().map(|run| run.name.as_str()).collect();
        let mut notes = runs::differences(before, after);
        notes.extend(runs::losses(before, after));
        let per = options.per.unwrap_or_else(|| runs::per(&snapshots));
        let units: Vec<Option<f64>> = snapshots.iter().map(|run| runs::unit(run, per)).collect();
        let mut metrics = phases::metrics(&snapshots, &units);
        match residency::metrics(&snapshots, &names) {
            Ok(residency) => metrics.extend(residency),
            Err(reason) => notes.push(format!("residency is not compared: {reason}")),
        }
        metrics.extend(energy::metrics(&snapshots, &names, &units, &mut notes));
        metrics.extend(rails::metrics(&snapshots, &names, &units, &mut notes));
        let mut bootstrap = Bootstrap::new(options.confidence);
        let mut rows: Vec<Row> =
            metrics.into_iter().map(|metric| row(metric, before.len(), &mut bootstrap)).collect();
        let level = Level::new(1.0 - options.confidence, &rows);
        for family in [Family::Phases, Family::Others] {
            level.judge(&mut rows, family, (before.len(), after.len()));
        }
        let tests = Tests::of(&rows, Family::Phases).distinct.len().max(1);
        let allows = |before, after| level.allows(Family::Phases, before, after, tests);
        let needed_runs = (2..MOST_RUNS).find(|&runs| allows(runs, runs));
        let can_judge = allows(before.len(), after.len());
        Self {
            schema: SCHEMA,
            version: VERSION,
            confidence: options.confidence,
            per,
            before: before.iter().map(|run| run.name.clone()).collect(),
            after: after.iter().map(|run| run.name.clone()).collect(),
            can_judge,
            needed_runs,
            notes,
            metrics: rows,
        }
    }

    /// Returns the figures that cost more.
    pub(super) fn worse(&self) -> impl Iterator<Item = &Row> {
        self.metrics.iter().filter(|row| row.verdict == Verdict::Worse)
    }

    /// Returns a figure of each phase, function or energy that costs more, and whether it does so only by what is nested in
    /// it. Of a phase it is the mean, if that is among them.
    pub(super) fn culprits(&self) -> Vec<(&Row, bool)> {
        let mut culprits: Vec<&Row> = Vec::new();
        for row in self.worse() {
            let is_of =
                |known: &&Row| matches!(row.subject, Subject::Phase(_)) && known.subject == row.subject;
            if !culprits.iter().any(is_of) {
                culprits.push(row);
            }
        }
        culprits.into_iter().map(|row| (row, self.is_by_nested(row))).collect()
    }

    /// Whether the mean of a phase has changed while its time without what is nested in it has not.
    pub(super) fn is_by_nested(&self, row: &Row) -> bool {
        let Some(phase) = row.name.strip_suffix(".mean") else { return false };
        if !matches!(row.subject, Subject::Phase(_)) {
            return false;
        }
        let own = format!("{phase}.exclusive_mean");
        let own = self.metrics.iter().find(|other| other.name == own);
        own.is_some_and(|own| own.family == Family::Phases && own.verdict != row.verdict)
    }
}

/// Probability of any false alarm, and its division.
struct Level {
    alarm: f64,
    /// Share of the first family, of 1; the rest is that of the others.
    phases: f64,
}

/// Tests of a family: figures whose values are the same are one.
struct Tests {
    /// Place of the first row of each test.
    distinct: Vec<usize>,
    /// Place of every row, and the number of its test.
    rows: Vec<(usize, usize)>,
}

impl Tests {
    fn of(rows: &[Row], family: Family) -> Self {
        let mut tests = Self { distinct: Vec::new(), rows: Vec::new() };
        for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.is_tested(family)) {
            let is_same = |known: &usize| {
                let known = &rows[*known];
                known.before.runs == row.before.runs && known.after.runs == row.after.runs
            };
            let test = tests.distinct.iter().position(is_same).unwrap_or_else(|| {
                tests.distinct.push(place);
                tests.distinct.len() - 1
            });
            tests.rows.push((place, test));
        }
        tests
    }
}

impl Level {
    fn new(alarm: f64, rows: &[Row]) -> Self {
        let has = |family| rows.iter().any(|row| row.is_tested(family));
        let phases = match (has(Family::Phases), has(Family::Others)) {
            (true, true) => PHASES_SHARE,
            (false, true) => 0.0,
            (_, false) => 1.0,
        };
        Self { alarm, phases }
    }

    /// Returns the part of the probability that a family has.
    fn of(&self, family: Family) -> f64 {
        match family {
            Family::Phases => self.phases,
            Family::Others => 1.0 - self.phases,
            Family::None => 0.0,
        }
    }

    /// Whether this many tests of a family can find anything in groups of these sizes.
    fn allows(&self, family: Family, before: usize, after: usize, tests: usize) -> bool {
        least_p_value(before, after) * tests as f64 <= self.alarm * self.of(family)
    }

    /// Corrects the p-values of a family, and judges its figures.
    fn judge(&self, rows: &mut [Row], family: Family, (before, after): (usize, usize)) {
        let tests = Tests::of(rows, family);
        let p_values: Vec<f64> = tests.distinct.iter().filter_map(|&place| rows[place].p).collect();
        let is_possible = self.allows(family, before, after, tests.distinct.len());
        let corrected = holm(&p_values);
        for (place, test) in tests.rows {
            let row = &mut rows[place];
            let adjusted = (corrected[test] / self.of(family)).min(1.0);
            row.adjusted_p = Some(adjusted);
            row.verdict = if !is_possible {
                Verdict::TooFewRuns
            } else if adjusted > self.alarm {
                Verdict::NoneFound
            } else {
                // By ranks, as the test: medians can be equal all the same.
                match (row.delta.is_some_and(|delta| delta > 0.0), row.unit.is_cost()) {
                    (true, true) => Verdict::Worse,
                    (false, true) => Verdict::Better,
                    (true, false) => Verdict::More,
                    (false, false) => Verdict::Less,
                }
            };
        }
    }
}

impl Row {
    /// Returns the relative change of what was nothing before: none, or infinitely much.
    pub(super) fn change_from_nothing(&self) -> Option<f64> {
        (self.before.median == Some(0.0)).then_some(())?;
        self.difference.map(|difference| if difference > 0.0 { f64::INFINITY } else { 0.0 })
    }

    /// Whether it is a test of the family. One whose values are all equal can find nothing, whichever side they are of,
    /// and counts for nothing.
    fn is_tested(&self, family: Family) -> bool {
        self.family == family && self.p.is_some() && !self.is_incomplete
    }
}

fn known(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().filter_map(|value| value.filter(|value| value.is_finite())).collect()
}

fn row(metric: Metric, runs_before: usize, bootstrap: &mut Bootstrap) -> Row {
    let Metric { name, subject, unit, family, is_incomplete, values } = metric;
    let (before, after) = values.split_at(runs_before);
    let (old, new) = (known(before), known(after));
    let (before, after) = (Group::new(before), Group::new(after));
    // A rail that current flowed back into has less than no energy: more of it is an increase all the same.
    let relative = |before: f64, after: f64| (after - before) / before.abs();
    let difference = before.median.zip(after.median).map(|(before, after)| after - before);
    let change = before.median.zip(after.median).map(|(before, after)| relative(before, after));
    let is_constant = old.iter().chain(&new).all(|value| Some(value) == old.first());
    let interval = match unit {
        Unit::Share => bootstrap.interval(&old, &new, |before, after| after - before),
        _ => bootstrap.interval(&old, &new, relative),
    };
    let is_judged = family != Family::None;
    let p =
        (is_judged && !old.is_empty() && !new.is_empty() && !is_constant).then(|| mann_whitney(&old, &new));
    let verdict = match (is_judged, is_incomplete) {
        (false, _) => Verdict::NotJudged,
        (true, true) => Verdict::Incomplete,
        (true, false) => Verdict::NoneFound,
    };
    Row {
        name,
        subject,
        unit,
        family,
        is_incomplete,
        difference,
        change: change.filter(|change| change.is_finite()),
        interval,
        delta: cliffs_delta(&old, &new),
        p,
        adjusted_p: None,
        verdict,
        before,
        after,
    }
}
