//! Figures of layers, phases and functions. The processes of a run count together: their ids are others in each run.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use nntrace_common::layer::Tag;

use super::metric::{Family, Metric, Subject, Unit};
use crate::report::snapshot::Snapshot;

/// Name of the row in which functions are summed that there was no room for.
const OTHERS: &str = "(others)";

/// Key of a phase, or of a function in it.
type Key = (Tag, Option<String>);

/// Sums of a phase or function in one run.
#[derive(Clone, Debug, Default)]
struct Sums {
    count: u64,
    total_ns: u64,
    exclusive_ns: u64,
    percentiles: Percentiles,
    is_incomplete: bool,
}

/// Percentiles of one or several rows.
#[derive(Clone, Debug, Default)]
enum Percentiles {
    /// No row yet.
    #[default]
    Empty,
    /// Distribution of all of them.
    Distribution(Box<Histogram<u32>>),
    /// Percentiles of one row without its distribution, ns.
    Known { p50: u64, p99: u64 },
    /// Several rows without distributions, or not recorded.
    Unknown,
}

/// A figure of phases and functions.
#[derive(Clone, Copy)]
enum Figure {
    Count,
    Total,
    Exclusive,
    Mean,
    ExclusiveMean,
    P50,
    P95,
    P99,
}

impl Figure {
    const ALL: [Self; 8] = [
        Self::Mean,
        Self::ExclusiveMean,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Total,
        Self::Exclusive,
        Self::Count,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Total => "total",
            Self::Exclusive => "exclusive",
            Self::Mean => "mean",
            Self::ExclusiveMean => "exclusive_mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
        }
    }

    const fn family(self, is_function: bool) -> Family {
        match (self, is_function) {
            (Self::Mean | Self::ExclusiveMean, false) => Family::Phases,
            // A function alone: what is nested in it has figures of its own.
            (Self::ExclusiveMean, true) | (Self::Total | Self::P99, false) => Family::Others,
            _ => Family::None,
        }
    }

    const fn is_percentile(self) -> bool {
        matches!(self, Self::P50 | Self::P95 | Self::P99)
    }

    /// Returns the value of a run; sums by the run's own unit of work.
    fn of(self, sums: Option<&Sums>, unit: Option<f64>) -> Option<f64> {
        let sum = |ns: fn(&Sums) -> u64| Some(sums.map_or(0, ns) as f64 / unit?);
        let mean = |ns: fn(&Sums) -> u64| {
            sums.filter(|sums| sums.count > 0).map(|sums| ns(sums) as f64 / sums.count as f64)
        };
        match self {
            Self::Count => sum(|sums| sums.count),
            Self::Total => sum(|sums| sums.total_ns),
            Self::Exclusive => sum(|sums| sums.exclusive_ns),
            Self::Mean => mean(|sums| sums.total_ns),
            Self::ExclusiveMean => mean(|sums| sums.exclusive_ns),
            Self::P50 => sums?.percentiles.p50(),
            Self::P95 => sums?.percentiles.at(0.95),
            Self::P99 => sums?.percentiles.p99(),
        }
    }
}

impl Percentiles {
    fn add(&mut self, other: Self) {
        let joined = match (std::mem::take(self), other) {
            (Self::Empty, other) => other,
            (Self::Distribution(mut all), Self::Distribution(more)) => {
                // It resizes itself to what is added.
                if all.add(&*more).is_ok() { Self::Distribution(all) } else { Self::Unknown }
            }
            _ => Self::Unknown,
        };
        *self = joined;
    }

    fn p50(&self) -> Option<f64> {
        match self {
            Self::Known { p50, .. } => Some(*p50 as f64),
            _ => self.at(0.5),
        }
    }

    fn p99(&self) -> Option<f64> {
        match self {
            Self::Known { p99, .. } => Some(*p99 as f64),
            _ => self.at(0.99),
        }
    }

    fn at(&self, quantile: f64) -> Option<f64> {
        match self {
            Self::Distribution(times) => Some(times.value_at_quantile(quantile) as f64),
            Self::Known { .. } | Self::Unknown | Self::Empty => None,
        }
    }
}

/// Returns the figures of all phases, then those of all functions. `units` are the divisors of sums, one a run.
pub(super) fn metrics(runs: &[&Snapshot], units: &[Option<f64>]) -> Vec<Metric> {
    let sums: Vec<BTreeMap<Key, Sums>> = runs.iter().map(|run| sums(run)).collect();
    // Phases come before the functions of any.
    let keys: BTreeSet<(bool, &Key)> =
        sums.iter().flat_map(BTreeMap::keys).map(|key| (key.1.is_some(), key)).collect();
    let mut metrics = Vec::new();
    for (is_function, key) in keys {
        let own: Vec<Option<&Sums>> = sums.iter().map(|run| run.get(key)).collect();
        let values = |figure: Figure| -> Vec<Option<f64>> {
            own.iter().zip(units).map(|(sums, unit)| figure.of(*sums, *unit)).collect()
        };
        let (means, counts) = (values(Figure::Mean), values(Figure::Count));
        for figure in Figure::ALL {
            let values = values(figure);
            if values.iter().all(Option::is_none) {
                continue;
            }
            // The same once more: the own time of what nothing is nested in, the sum of what is always as often.
            let is_repeated = match figure {
                Figure::ExclusiveMean => !is_function && values == means,
                Figure::Total => counts.iter().all(|count| *count == counts[0]),
                _ => false,
            };
            let family = if is_repeated { Family::None } else { figure.family(is_function) };
            let lost = match (is_function, figure.is_percentile()) {
                (true, _) => "functions",
                (false, true) => "phases.histogram",
                (false, false) => "phases",
            };
            let name = match &key.1 {
                Some(function) => format!("{}:{function}.{}", key.0, figure.name()),
                None => format!("{}.{}", key.0, figure.name()),
            };
            metrics.push(Metric {
                name,
                subject: if is_function { Subject::Function } else { Subject::Phase(key.0) },
                unit: if matches!(figure, Figure::Count) { Unit::Count } else { Unit::Ns },
                family,
                is_incomplete: own.iter().flatten().any(|sums| sums.is_incomplete)
                    || runs.iter().any(|run| run.loss.makes_incomplete(lost)),
                values,
            });
        }
    }
    metrics
}

fn sums(run: &Snapshot) -> BTreeMap<Key, Sums> {
    let mut all: BTreeMap<Key, Sums> = BTreeMap::new();
    for row in &run.phases {
        let sums = all.entry((Tag::new(row.layer, row.phase), None)).or_default();
        sums.add(row.count, row.total_ns, row.exclusive_ns);
        if let Some(times) = &row.histogram {
            sums.percentiles.add(Percentiles::Distribution(Box::new((**times).clone())));
        } else if row.count > 0 {
            sums.percentiles.add(Percentiles::Unknown);
        }
    }
    for row in &run.functions {
        let sums = all.entry((Tag::new(row.layer, row.phase), Some(row.name.clone()))).or_default();
        sums.add(row.count, row.total_ns, row.exclusive_ns);
        sums.percentiles.add(Percentiles::Known { p50: row.p50_ns, p99: row.p99_ns });
        // It may hold other functions in each run.
        sums.is_incomplete |= row.is_partial || row.name == OTHERS;
    }
    all
}

impl Sums {
    fn add(&mut self, count: u64, total_ns: u64, exclusive_ns: u64) {
        self.count = self.count.saturating_add(count);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.exclusive_ns = self.exclusive_ns.saturating_add(exclusive_ns);
    }
}
