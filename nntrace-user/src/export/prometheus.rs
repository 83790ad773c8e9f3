//! Results of a run as metrics, in the text format of Prometheus.
//!
//! Labels are bounded: beyond the largest, series are summed as `(others)`.

mod exposition;
mod sections;

use self::{
    exposition::{Exposition, Kind, Labels, Seconds},
    sections::{BOUNDS, Sections, largest},
};
use crate::{
    model::{Findings, capped_table::OTHERS},
    report::snapshot::{EnergyPartsRow, FrequencyRow, IdleRow, ResultUnit, Snapshot},
};

/// Frequencies of a CPU or cluster that have series of their own: those with the most time.
const MOST_FREQUENCIES: usize = 50;
/// Value of a label that is not known.
const UNKNOWN: &str = "unknown";

/// Renders the metrics. The snapshot is that of the findings.
#[must_use]
pub fn render(findings: &Findings<'_>, snapshot: &Snapshot) -> String {
    let mut text = Exposition::default();
    run(&mut text, snapshot);
    marked(&mut text, &Sections::of(findings, snapshot));
    cpus(&mut text, snapshot);
    clusters(&mut text, snapshot);
    energy(&mut text, snapshot);
    text.into_text()
}

/// Adds the run, and what it lacks.
fn run(text: &mut Exposition, snapshot: &Snapshot) {
    let Snapshot { tool, host, window, source, overhead, loss, .. } = snapshot;
    let labels = vec![
        ("version", tool.version.clone()),
        ("source", source.kind.to_string()),
        ("kernel", host.kernel.clone()),
        ("machine", host.machine.clone()),
    ];
    text.family("nntrace_run_info", Kind::Gauge, "Run that was measured.", [(labels, 1)]);
    let length = Seconds(window.length_ns());
    text.single("nntrace_run_duration_seconds", Kind::Gauge, "Time that was measured.", length);
    text.single("nntrace_marks_total", Kind::Counter, "Marks of the targets.", overhead.marks);
    text.single(
        "nntrace_power_events_total",
        Kind::Counter,
        "Events of idle states and frequencies.",
        overhead.power_events,
    );
    text.single(
        "nntrace_records_total",
        Kind::Counter,
        "Records that the kernel programs made.",
        loss.records_produced,
    );
    let lost = [
        ("dropped", loss.records_dropped),
        ("late", loss.records_late),
        ("unreadable", loss.records_unreadable),
    ];
    text.family(
        "nntrace_records_lost_total",
        Kind::Counter,
        "Records that are in no result, by reason.",
        lost.map(|(reason, count)| (vec![("reason", reason.to_owned())], count)),
    );
}

/// Adds marked sections.
fn marked(text: &mut Exposition, sections: &Sections) {
    let Sections { phases, functions } = sections;
    text.histograms(
        "nntrace_phase_duration_seconds",
        "Durations of the sections of a layer and phase, by the stack rule of the contract.",
        &BOUNDS,
        phases.iter().map(|(key, sum)| (key.labels(), sum.distribution())),
    );
    text.family(
        "nntrace_phase_exclusive_seconds_total",
        Kind::Counter,
        "Time in the sections of a layer and phase, without the marked sections in them.",
        phases.iter().map(|(key, sum)| (key.labels(), Seconds(sum.exclusive_ns))),
    );
    text.histograms(
        "nntrace_function_duration_seconds",
        "Durations of the sections of a function.",
        &BOUNDS,
        functions.iter().map(|(key, sum)| (key.labels(), sum.distribution())),
    );
    text.family(
        "nntrace_function_exclusive_seconds_total",
        Kind::Counter,
        "Time in the sections of a function, without the marked sections in them.",
        functions.iter().map(|(key, sum)| (key.labels(), Seconds(sum.exclusive_ns))),
    );
}

/// Adds the residency of CPUs.
fn cpus(text: &mut Exposition, snapshot: &Snapshot) {
    let cpus = || {
        snapshot
            .cpus
            .iter()
            .map(|row| (row, vec![("cluster", row.cluster.clone()), ("cpu", row.cpu.to_string())]))
    };
    text.family(
        "nntrace_cpu_idle_seconds_total",
        Kind::Counter,
        "Time of a CPU in an idle state.",
        cpus().flat_map(|(row, labels)| idle(&labels, &row.idle, row.idle_unknown_ns)),
    );
    text.family(
        "nntrace_cpu_idle_entries_total",
        Kind::Counter,
        "Times that a CPU entered an idle state.",
        cpus().flat_map(|(row, labels)| entries(&labels, &row.idle)),
    );
    text.family(
        "nntrace_cpu_running_seconds_total",
        Kind::Counter,
        "Time of a CPU running, by requested frequency.",
        cpus().flat_map(|(row, labels)| frequencies(&labels, &row.running)),
    );
    text.family(
        "nntrace_cpu_offline_seconds_total",
        Kind::Counter,
        "Time of a CPU offline.",
        cpus().map(|(row, labels)| (labels, Seconds(row.offline_ns))),
    );
    text.family(
        "nntrace_cpu_unknown_seconds_total",
        Kind::Counter,
        "Time of a CPU of which nothing is known.",
        cpus().map(|(row, labels)| (labels, Seconds(row.unknown_ns))),
    );
}

/// Adds the states of clusters.
fn clusters(text: &mut Exposition, snapshot: &Snapshot) {
    let clusters = || snapshot.clusters.iter().map(|row| (row, vec![("cluster", row.cluster.clone())]));
    text.family(
        "nntrace_cluster_idle_seconds_total",
        Kind::Counter,
        "Time of a cluster with all CPUs idle, by the deepest state that they have in common.",
        clusters().flat_map(|(row, labels)| idle(&labels, &row.idle, row.idle_unknown_ns)),
    );
    text.family(
        "nntrace_cluster_active_seconds_total",
        Kind::Counter,
        "Time of a cluster with a CPU running, by the highest requested frequency of those that run.",
        clusters().flat_map(|(row, labels)| frequencies(&labels, &row.active)),
    );
    text.family(
        "nntrace_cluster_running_cpus_seconds_total",
        Kind::Counter,
        "Time of a cluster by how many of its CPUs ran at once.",
        clusters().flat_map(|(row, labels)| {
            row.concurrency.iter().map(move |part| {
                let count = part.running_cpus.map_or_else(|| UNKNOWN.into(), |count| count.to_string());
                (with(&labels, [("running_cpus", count)]), Seconds(part.ns))
            })
        }),
    );
    text.family(
        "nntrace_cluster_offline_seconds_total",
        Kind::Counter,
        "Time of a cluster with all CPUs offline.",
        clusters().map(|(row, labels)| (labels, Seconds(row.offline_ns))),
    );
    text.family(
        "nntrace_cluster_unknown_seconds_total",
        Kind::Counter,
        "Time of a cluster of which nothing is known.",
        clusters().map(|(row, labels)| (labels, Seconds(row.unknown_ns))),
    );
}

/// Adds the energy of clusters, where the model's unit is known.
fn energy(text: &mut Exposition, snapshot: &Snapshot) {
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
    text.family(
        "nntrace_energy_joules_total",
        Kind::Counter,
        "Energy of a cluster and its CPUs in the known time, by the energy model.",
        clusters,
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
