//! Makes a [`Snapshot`] out of what the model found.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Serializer as _, V2Serializer},
};
use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind},
    layer::{Phase, Tag},
    power::Residency,
    record::Total,
};

use super::snapshot::{
    AppPhaseTimes, ClusterRow, ConcurrencyRow, CounterRow, CpuRow, DetailRow, Diagnostic, EffectiveRow,
    Executions, FrequencyRow, FunctionRow, Host, IdleRow, Loss, Overhead, PhaseRow, ReportRow, SCHEMA,
    Snapshot, Source, StackRow, Tool, TrackRow, VERSION, Window,
};
use crate::model::{
    Marks, Topology,
    clusters::ClusterResidency,
    power::CpuResidency,
    reports::{self, Report},
    stacks::Totals,
    timeline::AppPhase,
};

/// A process that appears in the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLabel {
    /// Its name; empty if it could not be read.
    pub comm: String,
}

/// What a snapshot is made of.
pub struct Parts<'a> {
    /// The machine.
    pub host: Host,
    /// The time.
    pub window: Window,
    /// Where the records came from.
    pub source: Source,
    /// The processes, by id.
    pub processes: &'a BTreeMap<u32, ProcessLabel>,
    /// What the records of marks tell.
    pub marks: &'a Marks,
    /// Exact totals of marks; only those that count.
    pub totals: &'a Totals,
    /// How CPUs belong together.
    pub topology: &'a Topology,
    /// What each CPU did.
    pub cpus: &'a [CpuResidency],
    /// What each cluster did, in the order of the topology.
    pub clusters: &'a [ClusterResidency],
    /// What measuring cost.
    pub overhead: Overhead,
    /// What was lost.
    pub loss: Loss,
    /// What was odd.
    pub diagnostics: &'a [(DiagnosticKind, DiagnosticCount)],
    /// What could not be measured.
    pub notes: Vec<String>,
    /// Whether to tell every function of every thread by itself.
    pub with_details: bool,
}

impl Parts<'_> {
    /// The snapshot; every list in it is sorted, so that equal input gives equal bytes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            schema: SCHEMA.into(),
            version: VERSION,
            tool: Tool { name: "nntrace-bpf".into(), version: env!("CARGO_PKG_VERSION").into() },
            host: self.host.clone(),
            window: self.window.clone(),
            source: self.source.clone(),
            reports: self.reports(),
            phases: self.phases(),
            stacks: self.stacks(),
            functions: self.functions(),
            details: if self.with_details { self.details() } else { Vec::new() },
            counters: self.counters(),
            tracks: self.tracks(),
            cpus: self.cpus(),
            clusters: self.clusters(),
            overhead: self.overhead.clone(),
            loss: self.loss.clone(),
            diagnostics: self.diagnostics(),
            notes: self.notes.clone(),
        }
    }

    fn reports(&self) -> Vec<ReportRow> {
        let app_phases = [(AppPhase::WarmUp, Phase::WarmUp), (AppPhase::Benchmark, Phase::Benchmark)];
        let row = |report: &Report| {
            let times = report.times();
            let app_phases = app_phases.iter().filter_map(|(app, phase)| {
                let times = &report.stretches.get(app)?.times;
                Some((
                    phase.code().into(),
                    AppPhaseTimes {
                        total_ns: times.app_phase_total(),
                        self_ns: times.app_phase_self_times(),
                    },
                ))
            });
            ReportRow {
                starting_mark: report.starting_mark.clone(),
                open_sections: report.open_sections,
                executions: Executions {
                    po: report.executions(AppPhase::Overall),
                    pwu: report.executions(AppPhase::WarmUp),
                    pbm: report.executions(AppPhase::Benchmark),
                },
                total_ns: times.total(),
                self_ns: times.self_times(),
                app_phases: app_phases.collect(),
            }
        };
        reports::reports(self.marks).iter().map(row).collect()
    }

    fn phases(&self) -> Vec<PhaseRow> {
        let unknown = ProcessLabel::default();
        let drivers = self.marks.drivers();
        let distributions = self.marks.sites.phases();
        let rows = self.marks.paths.phases(self.totals).into_iter().map(|((pid, tag), total)| {
            let process = self.processes.get(&pid).unwrap_or(&unknown);
            let times = distributions.get(&(pid, tag)).filter(|times| !times.is_empty());
            let quantile = |q: f64| times.map(|times| times.value_at_quantile(q));
            PhaseRow {
                pid,
                comm: process.comm.clone(),
                role: if drivers.contains(&pid) { "driver" } else { "application" }.into(),
                layer: tag.layer().code().into(),
                phase: tag.phase().code().into(),
                count: total.count,
                total_ns: total.own,
                exclusive_ns: total.exclusive,
                min_ns: times.map(Histogram::min),
                p50_ns: quantile(0.5),
                p90_ns: quantile(0.9),
                p99_ns: quantile(0.99),
                max_ns: times.map(Histogram::max),
                histogram: times.map(encode).unwrap_or_default(),
            }
        });
        // By tag is the contract's order of layers and phases.
        rows.collect()
    }

    fn stacks(&self) -> Vec<StackRow> {
        let rows = self.marks.paths.stacks(self.totals).into_iter().map(|sum| StackRow {
            pid: sum.pid,
            path: sum.path,
            count: sum.total.count,
            total_ns: sum.total.own,
            exclusive_ns: sum.total.exclusive,
        });
        rows.collect()
    }

    fn functions(&self) -> Vec<FunctionRow> {
        let mut rows: Vec<(u32, Tag, FunctionRow)> = self
            .marks
            .sites
            .functions()
            .into_iter()
            .map(|((pid, tag, name), sum)| {
                let row = FunctionRow {
                    pid,
                    layer: tag.layer().code().into(),
                    phase: tag.phase().code().into(),
                    name: self.marks.names.text(name),
                    count: sum.total.count,
                    total_ns: sum.total.own,
                    exclusive_ns: sum.total.exclusive,
                    p50_ns: sum.times.value_at_quantile(0.5),
                    p99_ns: sum.times.value_at_quantile(0.99),
                    max_ns: sum.times.max(),
                };
                (pid, tag, row)
            })
            .collect();
        rows.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
        rows.into_iter().map(|(.., row)| row).collect()
    }

    /// By process, thread, layer and phase; what adds to the total first.
    fn details(&self) -> Vec<DetailRow> {
        let mut sums: BTreeMap<(u32, u32, Tag, bool, String), Total> = BTreeMap::new();
        for site in self.marks.sites.counted() {
            let is_detail = !self.marks.paths.adds(site.key.path);
            let key = (site.key.pid, site.key.tid, site.tag, is_detail, self.marks.names.text(site.key.name));
            let sum = sums.entry(key).or_default();
            site.sums.iter().for_each(|(_, part)| sum.add(&part.total));
        }
        let rows = sums.into_iter().map(|((pid, tid, tag, is_detail, name), sum)| DetailRow {
            pid,
            tid,
            layer: tag.layer().code().into(),
            phase: tag.phase().code().into(),
            name,
            adds: !is_detail,
            count: sum.count,
            total_ns: sum.own,
            exclusive_ns: sum.exclusive,
        });
        rows.collect()
    }

    /// Counters, by process and name.
    fn counters(&self) -> Vec<CounterRow> {
        let rows = self.marks.tracks.counters.iter().map(|((pid, name), values)| CounterRow {
            pid: *pid,
            name: name.clone(),
            count: values.len() as u64,
            min: values.iter().map(|(_, value)| *value).min(),
            max: values.iter().map(|(_, value)| *value).max(),
            last: values.iter().max_by_key(|(time, _)| *time).map(|(_, value)| *value),
        });
        rows.collect()
    }

    /// Asynchronous slices and instants, by process, track and name.
    fn tracks(&self) -> Vec<TrackRow> {
        let tracks = &self.marks.tracks;
        let row = |(pid, track, name): &(u32, String, String)| TrackRow {
            pid: *pid,
            track: track.clone(),
            name: name.clone(),
            instants: 0,
            slices: 0,
            slices_ns: 0,
        };
        let mut rows: BTreeMap<&(u32, String, String), TrackRow> = BTreeMap::new();
        for (key, instants) in &tracks.instants {
            rows.entry(key).or_insert_with(|| row(key)).instants = instants.len() as u64;
        }
        for (key, slices) in &tracks.slices {
            let row = rows.entry(key).or_insert_with(|| row(key));
            row.slices = slices.len() as u64;
            row.slices_ns = slices.iter().map(|slice| slice.end - slice.begin).sum();
        }
        rows.into_values().collect()
    }

    fn cpus(&self) -> Vec<CpuRow> {
        let effective_of = |cpu: u32| self.clusters.iter().find_map(|cluster| cluster.effective.get(&cpu));
        let rows = self.cpus.iter().map(|residency| CpuRow {
            cpu: residency.cpu,
            cluster: self.topology.cluster_of(residency.cpu).into(),
            idle: self.idle(residency.cpu, &residency.idle),
            running: frequencies(&residency.running),
            effective: effective_of(residency.cpu)
                .into_iter()
                .flatten()
                .map(|(&khz, &ns)| EffectiveRow { khz, ns })
                .collect(),
            idle_unknown_ns: residency.idle_unknown_ns,
            offline_ns: residency.offline_ns,
            unknown_ns: residency.unknown_ns,
        });
        rows.collect()
    }

    fn clusters(&self) -> Vec<ClusterRow> {
        let rows = self.topology.clusters.iter().zip(self.clusters).map(|(cluster, residency)| ClusterRow {
            cluster: cluster.name.clone(),
            cpus: cluster.cpus.clone(),
            active: frequencies(&residency.active),
            idle: self.idle(cluster.cpus.first().copied().unwrap_or(0), &residency.idle),
            concurrency: residency
                .concurrency
                .iter()
                .map(|(&running_cpus, &ns)| ConcurrencyRow { running_cpus, ns })
                .collect(),
            idle_unknown_ns: residency.idle_unknown_ns,
            offline_ns: residency.offline_ns,
            unknown_ns: residency.unknown_ns,
        });
        rows.collect()
    }

    /// Rows of idle states, with the names that they have on `cpu`.
    fn idle(&self, cpu: u32, idle: &BTreeMap<u32, Residency>) -> Vec<IdleRow> {
        let rows = idle.iter().map(|(&state, stay)| IdleRow {
            state,
            name: self.topology.idle_name(cpu, state),
            ns: stay.ns,
            hits: stay.hits,
            min_ns: (stay.hits > 0).then_some(stay.min_ns),
            max_ns: (stay.hits > 0).then_some(stay.max_ns),
            early: None,
            late: None,
        });
        rows.collect()
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        let rows = self.diagnostics.iter().map(|(kind, count)| Diagnostic {
            kind: kind.name().into(),
            count: count.count,
            first_ns: count.first_ns,
            tid: count.tid,
            example: String::from_utf8_lossy(count.example.get(..count.len as usize).unwrap_or_default())
                .into_owned(),
        });
        rows.collect()
    }
}

fn frequencies(by_khz: &BTreeMap<Option<u32>, (u64, u64)>) -> Vec<FrequencyRow> {
    by_khz.iter().map(|(&khz, &(ns, hits))| FrequencyRow { khz, ns, hits }).collect()
}

/// A histogram in the form that every implementation of it reads.
fn encode(histogram: &Histogram<u32>) -> String {
    let mut bytes = Vec::new();
    // Writing to memory fails only for a histogram too large to describe; an empty string says that there is none.
    match V2Serializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}
