//! Results of a run as metrics: families of series with labels, whatever format they are written in.
//!
//! Labels are bounded: beyond the largest, series are summed as `(others)`, and how many were is a metric.

mod bounds;
mod exponential;
mod family;
mod sections;

use std::collections::BTreeMap;

use self::sections::{Sections, largest};
pub(in crate::export) use self::{
    bounds::BOUNDS,
    exponential::SCHEMA,
    family::{Distribution, Family, Labels, Seconds, Series, Value},
};
use crate::{
    model::{Findings, capped_table::OTHERS},
    report::snapshot::{EnergyPartsRow, FrequencyRow, IdleRow, ResultUnit, Snapshot},
};

/// Frequencies of a CPU or cluster that have series of their own: those with the most time.
const MOST_FREQUENCIES: usize = 50;
/// Value of a label that is not known.
const UNKNOWN: &str = "unknown";

/// Metrics of a run.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    families: Vec<Family>,
    /// Number of rows that have no series of their own here, by what they are.
    left_out: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// Returns the metrics of what was found. The snapshot is that of the findings.
    #[must_use]
    pub fn of(findings: &Findings<'_>, snapshot: &Snapshot) -> Self {
        let mut metrics = Self::default();
        run(&mut metrics, snapshot);
        marked(&mut metrics, Sections::of(findings, snapshot));
        cpus(&mut metrics, snapshot);
        clusters(&mut metrics, snapshot);
        energy(&mut metrics, snapshot);
        rails(&mut metrics, snapshot);
        metrics.count_rows_left_out(snapshot);
        metrics
    }

    /// Returns the families, each with at least one series.
    pub(in crate::export) fn families(&self) -> &[Family] {
        &self.families
    }

    /// Adds sums that only grow, if there are any.
    fn counters<V: Into<Value>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.add(name, help, Series::Counters(values(series)));
    }

    /// Adds a sum without labels.
    fn counter(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.counters(name, help, [(Labels::new(), value)]);
    }

    /// Adds values, if there are any.
    fn gauges<V: Into<Value>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.add(name, help, Series::Gauges(values(series)));
    }

    /// Adds distributions, if there are any.
    fn histograms(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = (Labels, Distribution)>,
    ) {
        self.add(name, help, Series::Histograms(series.into_iter().collect()));
    }

    fn add(&mut self, name: &'static str, help: &'static str, mut series: Series) {
        if series.len() > 0 {
            series.tidy_labels();
            self.families.push(Family { name, help, series });
        }
    }

    /// Adds what has no series of its own: here, and already in the tables of results.
    fn count_rows_left_out(&mut self, snapshot: &Snapshot) {
        let states = snapshot.cpus.iter().map(|row| &row.running);
        let states = states.chain(snapshot.clusters.iter().map(|row| &row.active));
        let frequencies: usize = states.map(|rows| rows.len().saturating_sub(MOST_FREQUENCIES)).sum();
        self.left_out.insert("frequencies", frequencies as u64);
        let rows = std::mem::take(&mut self.left_out);
        let series = rows.into_iter().map(|(rows, count)| (vec![("rows", rows.to_owned())], count));
        self.gauges(
            "nntrace_rows_without_series",
            "Rows that are among the series (others), as there are only so many series.",
            series,
        );
        let tables = &snapshot.loss.summed;
        self.gauges(
            "nntrace_rows_summed",
            "Rows that the tables of results had no room for (--memory), by table.",
            tables.iter().map(|(table, count)| (vec![("table", table.clone())], *count)),
        );
    }
}

fn values<V: Into<Value>>(series: impl IntoIterator<Item = (Labels, V)>) -> Vec<(Labels, Value)> {
    series.into_iter().map(|(labels, value)| (labels, value.into())).collect()
}

/// Adds the run, and what it lacks.
fn run(metrics: &mut Metrics, snapshot: &Snapshot) {
    let Snapshot { tool, host, window, source, overhead, loss, .. } = snapshot;
    let labels = vec![
        ("version", tool.version.clone()),
        ("source", source.kind.to_string()),
        ("kernel", host.kernel.clone()),
        ("machine", host.machine.clone()),
    ];
    metrics.gauges("nntrace_run_info", "Run that was measured.", [(labels, 1_u64)]);
    let length = Seconds(window.length_ns());
    metrics.gauges("nntrace_run_duration_seconds", "Time that was measured.", [(Labels::new(), length)]);
    metrics.counter("nntrace_marks_total", "Marks of the targets.", overhead.marks);
    metrics.counter(
        "nntrace_power_events_total",
        "Events of idle states and frequencies.",
        overhead.power_events,
    );
    metrics.counter("nntrace_records_total", "Records that the kernel programs made.", loss.records_produced);
    let lost = [
        ("dropped", loss.records_dropped),
        ("late", loss.records_late),
        ("unreadable", loss.records_unreadable),
    ];
    metrics.counters(
        "nntrace_records_lost_total",
        "Records that are in no result, by reason.",
        lost.map(|(reason, count)| (vec![("reason", reason.to_owned())], count)),
    );
}

/// Adds marked sections.
fn marked(metrics: &mut Metrics, sections: Sections) {
    let Sections { phases, functions, left_out } = sections;
    metrics.left_out = left_out;
    metrics.histograms(
        "nntrace_phase_duration_seconds",
        "Durations of the sections of a layer and phase, by the stack rule of the contract.",
        phases.iter().map(|(key, sum)| (key.labels(), sum.distribution())),
    );
    let unknown = phases.iter().map(|(key, sum)| (key.labels(), sum.unknown_durations()));
    metrics.counters(
        "nntrace_phase_durations_lost_total",
        "Sections of a layer and phase whose durations were lost: in count and sum, and in no bucket that ends.",
        unknown.filter(|(_, count)| *count > 0),
    );
    metrics.counters(
        "nntrace_phase_exclusive_seconds_total",
        "Time in the sections of a layer and phase, without the marked sections in them.",
        phases.iter().map(|(key, sum)| (key.labels(), Seconds(sum.exclusive_ns))),
    );
    metrics.histograms(
        "nntrace_function_duration_seconds",
        "Durations of the sections of a function.",
        functions.iter().map(|(key, sum)| (key.labels(), sum.distribution())),
    );
    metrics.counters(
        "nntrace_function_exclusive_seconds_total",
        "Time in the sections of a function, without the marked sections in them.",
        functions.iter().map(|(key, sum)| (key.labels(), Seconds(sum.exclusive_ns))),
    );
}

/// Adds the residency of CPUs.
fn cpus(metrics: &mut Metrics, snapshot: &Snapshot) {
    let cpus = || {
        snapshot
            .cpus
            .iter()
            .map(|row| (row, vec![("cluster", row.cluster.clone()), ("cpu", row.cpu.to_string())]))
    };
    metrics.counters(
        "nntrace_cpu_idle_seconds_total",
        "Time of a CPU in an idle state.",
        cpus().flat_map(|(row, labels)| idle(&labels, &row.idle, row.idle_unknown_ns)),
    );
    metrics.counters(
        "nntrace_cpu_idle_entries_total",
        "Times that a CPU entered an idle state.",
        cpus().flat_map(|(row, labels)| entries(&labels, &row.idle)),
    );
    metrics.counters(
        "nntrace_cpu_running_seconds_total",
        "Time of a CPU running, by requested frequency.",
        cpus().flat_map(|(row, labels)| frequencies(&labels, &row.running)),
    );
    metrics.counters(
        "nntrace_cpu_offline_seconds_total",
        "Time of a CPU offline.",
        cpus().map(|(row, labels)| (labels, Seconds(row.offline_ns))),
    );
    metrics.counters(
        "nntrace_cpu_unknown_seconds_total",
        "Time of a CPU of which nothing is known.",
        cpus().map(|(row, labels)| (labels, Seconds(row.unknown_ns))),
    );
}

/// Adds the states of clusters.
fn clusters(metrics: &mut Metrics, snapshot: &Snapshot) {
    let clusters = || snapshot.clusters.iter().map(|row| (row, vec![("cluster", row.cluster.clone())]));
    metrics.counters(
        "nntrace_cluster_idle_seconds_total",
        "Time of a cluster with all CPUs idle, by the deepest state that they have in common.",
        clusters().flat_map(|(row, labels)| idle(&labels, &row.idle, row.idle_unknown_ns)),
    );
    metrics.counters(
        "nntrace_cluster_active_seconds_total",
        "Time of a cluster with a CPU running, by the highest requested frequency of those that run.",
        clusters().flat_map(|(row, labels)| frequencies(&labels, &row.active)),
    );
    metrics.counters(
        "nntrace_cluster_running_cpus_seconds_total",
        "Time of a cluster by how many of its CPUs ran at once.",
        clusters().flat_map(|(row, labels)| {
            row.concurrency.iter().map(move |part| {
                let count = part.running_cpus.map_or_else(|| UNKNOWN.into(), |count| count.to_string());
                (with(&labels, [("running_cpus", count)]), Seconds(part.ns))
            })
        }),
    );
    metrics.counters(
        "nntrace_cluster_offline_seconds_total",
        "Time of a cluster with all CPUs offline.",
        clusters().map(|(row, labels)| (labels, Seconds(row.offline_ns))),
    );
    metrics.counters(
        "nntrace_cluster_unknown_seconds_total",
        "Time of a cluster of which nothing is known.",
        clusters().map(|(row, labels)| (labels, Seconds(row.unknown_ns))),
    );
}

/// Adds the energy of clusters, where the model's unit is known.
fn energy(metrics: &mut Metrics, snapshot: &Snapshot) {
    let energy = snapshot.energy.iter().filter(|energy| energy.unit == ResultUnit::Joule);
    let clusters = energy.flat_map(|energy| &energy.clusters).flat_map(|row| {
        let EnergyPartsRow { cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups } = row.parts;
        let parts = [
            ("cluster_idle", cluster_idle),
            ("cluster_active", cluster_active),
            ("cpu_idle", cpu_idle),
            ("cpu_active", cpu_active),
            ("wakeups", wakeups),
        ];
        parts
            .map(|(part, joules)| (vec![("cluster", row.cluster.clone()), ("part", part.to_owned())], joules))
    });
    metrics.counters(
        "nntrace_energy_joules_total",
        "Energy of a cluster and its CPUs in the known time, by the energy model.",
        clusters,
    );
}

/// Adds the measured energy of rails. Where current flowed back it is no sum that only grows.
fn rails(metrics: &mut Metrics, snapshot: &Snapshot) {
    let rails = snapshot.rails.iter().flat_map(|rails| &rails.rails).filter(|rail| rail.energy_nj >= 0);
    metrics.counters(
        "nntrace_rail_energy_joules_total",
        "Measured energy of a power rail. Rails may overlap.",
        rails.map(|rail| {
            let labels = vec![("rail", rail.path()), ("kind", rail.kind.name().to_owned())];
            (labels, rail.energy_nj as f64 * 1e-9)
        }),
    );
}

/// Returns the series of idle states; the time in unknown ones last, if there is any.
fn idle(labels: &Labels, states: &[IdleRow], unknown_ns: u64) -> Vec<(Labels, Seconds)> {
    let unknown = (unknown_ns > 0).then(|| {
        (with(labels, [("state", UNKNOWN.to_owned()), ("name", String::new())]), Seconds(unknown_ns))
    });
    states.iter().map(|row| (with(labels, state(row)), Seconds(row.ns))).chain(unknown).collect()
}

/// Returns how often idle states were entered.
fn entries(labels: &Labels, states: &[IdleRow]) -> Vec<(Labels, u64)> {
    states.iter().map(|row| (with(labels, state(row)), row.hits)).collect()
}

fn state(row: &IdleRow) -> [(&'static str, String); 2] {
    [("state", row.state.to_string()), ("name", row.name.clone())]
}

/// Returns the series of frequencies: the largest, and the sum of the others.
fn frequencies(labels: &Labels, rows: &[FrequencyRow]) -> Vec<(Labels, Seconds)> {
    let shown = largest(rows.iter().map(|row| (row.khz, row.ns)), MOST_FREQUENCIES);
    let (shown, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| shown.contains(&row.khz));
    let series = |frequency: String, ns: u64| (with(labels, [("frequency_hertz", frequency)]), Seconds(ns));
    let mut all: Vec<_> = shown
        .into_iter()
        .map(|row| {
            let hertz = row.khz.map(|khz| (u64::from(khz) * 1_000).to_string());
            series(hertz.unwrap_or_else(|| UNKNOWN.into()), row.ns)
        })
        .collect();
    if !others.is_empty() {
        all.push(series(OTHERS.into(), others.iter().map(|row| row.ns).sum()));
    }
    all
}

fn with<const N: usize>(labels: &Labels, more: [(&'static str, String); N]) -> Labels {
    labels.iter().cloned().chain(more).collect()
}
