//! Sums of sections by name of their process, layer, phase and function: as many as a server can keep of every run.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use hdrhistogram::Histogram;
use nntrace_common::layer::{Layer, Phase};

use super::{
    bounds::BOUNDS,
    family::{Distribution, Labels, label},
};
use crate::{
    model::{Findings, capped_table::OTHERS},
    report::snapshot::Snapshot,
};

/// Names of processes that have series of their own: those with the most exclusive time.
pub(super) const MOST_PROCESSES: usize = 50;
/// Functions that have series of their own: those with the most time.
pub(super) const MOST_FUNCTIONS: usize = 100;

/// Labels of sections, as they are written: what has the same is summed. Those of layers and phases have no function.
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
    /// Their durations, less what is subtracted from them.
    times: Distribution,
    /// Sum of their durations without the marked sections in them, ns.
    pub(super) exclusive_ns: u64,
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
    /// Returns the sums of this many sections, with the durations that are known one by one.
    fn of(count: u64, sum_ns: u64, exclusive_ns: u64, times: Option<&Histogram<u32>>) -> Self {
        let mut sum = Self { times: Distribution { count, sum_ns, ..Distribution::default() }, exclusive_ns };
        if let Some(times) = times {
            sum.times.exponential.add_times(times);
            sum.times.up_to = up_to_bounds(times);
            sum.times.known = times.len();
        }
        sum
    }

    fn add(&mut self, other: &Self) {
        let Self { times, exclusive_ns } = other;
        self.times.count = self.times.count.saturating_add(times.count);
        self.times.sum_ns = self.times.sum_ns.saturating_add(times.sum_ns);
        self.times.known = self.times.known.saturating_add(times.known);
        for (sum, part) in self.times.up_to.iter_mut().zip(times.up_to) {
            *sum = sum.saturating_add(part);
        }
        self.times.exponential.add(&times.exponential);
        self.exclusive_ns = self.exclusive_ns.saturating_add(*exclusive_ns);
    }

    /// Returns the number of sections whose records were lost: they are in the sums only.
    pub(super) fn unknown_durations(&self) -> u64 {
        self.times.count.saturating_sub(self.times.known)
    }

    /// Returns the series of the histogram. Sections whose records were lost are in its count only.
    pub(super) fn distribution(&self) -> Distribution {
        let mut times = self.times.clone();
        times.count = times.count.max(times.known);
        times
    }
}

/// Returns how many times there are up to each bound. A bucket of the model with a bound in it counts whole.
fn up_to_bounds(times: &Histogram<u32>) -> [u64; BOUNDS.len()] {
    let mut counts = [0_u64; BOUNDS.len()];
    for step in times.iter_recorded() {
        let lowest = times.lowest_equivalent(step.value_iterated_to());
        if let Some(count) = counts.get_mut(BOUNDS.partition_point(|&bound| bound < lowest)) {
            *count = count.saturating_add(step.count_at_value().into());
        }
    }
    let mut sum = 0_u64;
    counts.map(|count| {
        sum = sum.saturating_add(count);
        sum
    })
}

/// Series of layers and phases, and of functions.
pub(super) struct Sections {
    /// Layers and phases.
    pub(super) phases: BTreeMap<Key, Sum>,
    /// Functions.
    pub(super) functions: BTreeMap<Key, Sum>,
    /// Number of rows that have no series of their own, by what they are.
    pub(super) left_out: BTreeMap<&'static str, u64>,
}

impl Sections {
    /// Returns what a run found.
    pub(super) fn of(findings: &Findings<'_>, snapshot: &Snapshot) -> Self {
        let phases = snapshot.phases.iter().map(|row| {
            let key = Key {
                process: label(&findings.process_name(row.pid)),
                layer: row.layer,
                phase: row.phase,
                function: None,
            };
            let times = row.histogram.as_deref();
            (key, Sum::of(row.count, row.total_ns, row.exclusive_ns, times))
        });
        let functions = findings.marks.sites.functions().into_iter().map(|((pid, tag, name), function)| {
            let key = Key {
                process: label(&findings.process_name(pid)),
                layer: tag.layer(),
                phase: tag.phase(),
                function: Some(label(&findings.marks.names.text(name))),
            };
            let total = &function.sum.total;
            (key, Sum::of(total.count, total.own, total.exclusive, Some(&function.sum.times.histogram())))
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
        let shown: BTreeSet<String> = largest(times.iter().map(|(name, ns)| (*name, *ns)), MOST_PROCESSES)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let process = |(key, sum): (Key, Sum)| {
            let is_shown = shown.contains(&key.process);
            (if is_shown { key } else { Key { process: OTHERS.into(), ..key } }, sum)
        };
        let functions = by_key(functions.into_iter().map(process));
        let weights = functions.iter().map(|(key, sum)| (key, sum.times.sum_ns));
        let largest: BTreeSet<Key> = largest(weights, MOST_FUNCTIONS).into_iter().cloned().collect();
        let function = |(key, sum): (Key, Sum)| {
            let is_shown = largest.contains(&key);
            (if is_shown { key } else { Key { function: Some(OTHERS.into()), ..key } }, sum)
        };
        let left_out =
            [("processes", times.len() - shown.len()), ("functions", functions.len() - largest.len())];
        Self {
            left_out: left_out.map(|(rows, count)| (rows, count as u64)).into(),
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
        let mut times = histogram::empty(histogram::MANY_DIGITS);
        histogram::record(&mut times, ns);
        (key, Sum::of(1, ns, ns, Some(&times)))
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
        // Those of ten processes are one row of each of the five names.
        assert_eq!(sections.left_out, [("processes", 10), ("functions", 51 * 5 - 100)].into());
    }

    #[test]
    fn what_was_lost_is_in_the_last_bucket() {
        let mut times = histogram::empty(histogram::MANY_DIGITS);
        for ns in [900, 1_000, 1_500_000, 20_000_000_000] {
            histogram::record(&mut times, ns);
        }
        let series = Sum::of(6, 30_000_000_000, 0, Some(&times)).distribution();
        assert_eq!((series.up_to[0], series.up_to[9], series.up_to[10], series.up_to[21]), (2, 2, 3, 3));
        assert_eq!((series.count, series.known, series.sum_ns), (6, 4, 30_000_000_000));
        assert_eq!(series.exponential.buckets.values().sum::<u64>(), 4);
        assert_eq!(series.up_to, BOUNDS.map(|bound| times.count_between(0, bound)));
    }
}
