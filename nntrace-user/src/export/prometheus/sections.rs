//! Sums of sections by name of their process, layer, phase and function: as many as a server can keep of every run.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use hdrhistogram::Histogram;
use nntrace_common::layer::{Layer, Phase};

use super::exposition::{Distribution, Labels};
use crate::{
    model::{Findings, capped_table::OTHERS},
    report::snapshot::Snapshot,
};

/// Names of processes that have series of their own: those with the most exclusive time.
pub(super) const MOST_PROCESSES: usize = 50;
/// Functions that have series of their own: those with the most time.
pub(super) const MOST_FUNCTIONS: usize = 100;

/// Bounds of the histograms, ns: 1, 2 and 5 of each power of ten from a microsecond to ten seconds.
pub(super) const BOUNDS: [u64; 22] = bounds();

const fn bounds() -> [u64; 22] {
    let mut bounds = [0; 22];
    let (mut at, mut unit) = (0, 1_000);
    while at < bounds.len() {
        bounds[at] = unit * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            unit *= 10;
        }
        at += 1;
    }
    bounds
}

/// Labels of sections; those of layers and phases have no function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    process: String,
    layer: Layer,
    phase: Phase,
    function: Option<String>,
}

/// Sums of sections.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// Number.
    count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    total_ns: u64,
    /// Sum of their durations without the marked sections in them, ns.
    pub(super) exclusive_ns: u64,
    up_to: [u64; BOUNDS.len()],
    /// Number of those whose durations are known one by one.
    known: u64,
}

impl Key {
    /// Returns the labels of a series.
    pub(super) fn labels(&self) -> Labels {
        let mut labels = vec![
            ("process", self.process.clone()),
            ("layer", self.layer.code().into()),
            ("phase", self.phase.code().into()),
        ];
        labels.extend(self.function.clone().map(|function| ("function", function)));
        labels
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.exclusive_ns = self.exclusive_ns.saturating_add(other.exclusive_ns);
        for (sum, part) in self.up_to.iter_mut().zip(other.up_to) {
            *sum = sum.saturating_add(part);
        }
        self.known = self.known.saturating_add(other.known);
    }

    fn with_times(mut self, times: &Histogram<u32>) -> Self {
        self.up_to = BOUNDS.map(|bound| times.count_between(0, bound));
        self.known = times.len();
        self
    }

    /// Returns the series of the histogram. Sections whose records were lost are in no bucket but the last.
    pub(super) fn distribution(&self) -> Distribution<{ BOUNDS.len() }> {
        Distribution { up_to: self.up_to, count: self.count.max(self.known), sum_ns: self.total_ns }
    }
}

/// Series of layers and phases, and of functions.
pub(super) struct Sections {
    /// Layers and phases.
    pub(super) phases: BTreeMap<Key, Sum>,
    /// Functions.
    pub(super) functions: BTreeMap<Key, Sum>,
}

impl Sections {
    /// Returns what a run found.
    pub(super) fn of(findings: &Findings<'_>, snapshot: &Snapshot) -> Self {
        let phases = snapshot.phases.iter().map(|row| {
            let key = Key {
                process: findings.process_name(row.pid),
                layer: row.layer,
                phase: row.phase,
                function: None,
            };
            let sum = Sum {
                count: row.count,
                total_ns: row.total_ns,
                exclusive_ns: row.exclusive_ns,
                ..Sum::default()
            };
            (key, row.histogram.iter().fold(sum, |sum, times| sum.with_times(times)))
        });
        let functions = findings.marks.sites.functions().into_iter().map(|((pid, tag, name), row)| {
            let key = Key {
                process: findings.process_name(pid),
                layer: tag.layer(),
                phase: tag.phase(),
                function: Some(findings.marks.names.text(name)),
            };
            let sum = Sum {
                count: row.total.count,
                total_ns: row.total.own,
                exclusive_ns: row.total.exclusive,
                ..Sum::default()
            };
            (key, sum.with_times(&row.times.histogram()))
        });
        Self::bounded(by_key(phases), by_key(functions))
    }

    /// Sums the series beyond the limits as `(others)`.
    fn bounded(phases: BTreeMap<Key, Sum>, functions: BTreeMap<Key, Sum>) -> Self {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for (key, sum) in &phases {
            let time = times.entry(&key.process).or_default();
            *time = time.saturating_add(sum.exclusive_ns);
        }
        let shown: BTreeSet<String> =
            largest(times.into_iter(), MOST_PROCESSES).into_iter().map(str::to_owned).collect();
        let process = |(key, sum): (Key, Sum)| {
            let is_shown = shown.contains(&key.process);
            (if is_shown { key } else { Key { process: OTHERS.into(), ..key } }, sum)
        };
        let functions = by_key(functions.into_iter().map(process));
        let times = functions.iter().map(|(key, sum)| (key, sum.total_ns));
        let largest: BTreeSet<Key> = largest(times, MOST_FUNCTIONS).into_iter().cloned().collect();
        let function = |(key, sum): (Key, Sum)| {
            let is_shown = largest.contains(&key);
            (if is_shown { key } else { Key { function: Some(OTHERS.into()), ..key } }, sum)
        };
        Self {
            phases: by_key(phases.into_iter().map(process)),
            functions: by_key(functions.into_iter().map(function)),
        }
    }
}

/// Adds up what has the same labels.
fn by_key(rows: impl Iterator<Item = (Key, Sum)>) -> BTreeMap<Key, Sum> {
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    rows.for_each(|(key, sum)| sums.entry(key).or_default().add(&sum));
    sums
}

/// Returns those with the largest weights; of equal ones the first by order.
pub(super) fn largest<T: Ord>(weighted: impl Iterator<Item = (T, u64)>, most: usize) -> Vec<T> {
    let mut weighted: Vec<(T, u64)> = weighted.collect();
    weighted.sort_by(|(a, a_weight), (b, b_weight)| (Reverse(a_weight), a).cmp(&(Reverse(b_weight), b)));
    weighted.into_iter().take(most).map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::histogram;

    fn row(process: usize, function: Option<usize>, ns: u64) -> (Key, Sum) {
        let key = Key {
            process: format!("p{process:03}"),
            layer: Layer::Runtime,
            phase: Phase::Execution,
            function: function.map(|function| format!("f{function:03}")),
        };
        let sum = Sum { count: 1, total_ns: ns, exclusive_ns: ns, known: 1, ..Sum::default() };
        (key, sum)
    }

    #[test]
    fn bounds_are_decimal() {
        assert_eq!(BOUNDS[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(BOUNDS[BOUNDS.len() - 1], 10_000_000_000);
    }

    #[test]
    fn the_largest_have_series_and_the_rest_is_summed() {
        let phases = by_key((0..60).map(|process| row(process, None, 1_000 + process as u64)));
        let functions = (0..60).flat_map(|process| (0..5).map(move |function| (process, function)));
        let functions = by_key(functions.map(|(process, function)| {
            row(process, Some(function), if function == 0 { 1_000 } else { process as u64 })
        }));
        let sections = Sections::bounded(phases, functions);
        let processes: BTreeSet<&str> = sections.phases.keys().map(|key| key.process.as_str()).collect();
        assert_eq!(processes.len(), MOST_PROCESSES + 1);
        assert!(processes.contains(OTHERS) && !processes.contains("p009") && processes.contains("p010"));
        let sum = |sums: &BTreeMap<Key, Sum>| sums.values().map(|sum| sum.exclusive_ns).sum::<u64>();
        assert_eq!(sum(&sections.phases), (0..60).map(|process| 1_000 + process).sum::<u64>());
        assert_eq!(sum(&sections.functions), (0..60).map(|process| 1_000 + 4 * process).sum::<u64>());
        let is_rest = |key: &&Key| key.function.as_deref() == Some(OTHERS);
        assert_eq!(sections.functions.keys().filter(|key| !is_rest(key)).count(), MOST_FUNCTIONS);
        assert!(sections.functions.keys().filter(is_rest).count() <= MOST_PROCESSES + 1);
    }

    #[test]
    fn what_was_lost_is_in_the_last_bucket() {
        let mut times = histogram::empty(histogram::MANY_DIGITS);
        for ns in [900, 1_000, 1_500_000, 20_000_000_000] {
            histogram::record(&mut times, ns);
        }
        let sum = Sum { count: 6, total_ns: 30_000_000_000, ..Sum::default() }.with_times(&times);
        let series = sum.distribution();
        assert_eq!((series.up_to[0], series.up_to[9], series.up_to[10], series.up_to[21]), (2, 2, 3, 3));
        assert_eq!((series.count, series.sum_ns), (6, 30_000_000_000));
    }
}
