//! Makes a [`Snapshot`] out of what the model found.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Serializer as _, V2Serializer},
};
use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind},
    layer::Tag,
    power::Residency,
};

use super::snapshot::{
    ClusterRow, ConcurrencyRow, CpuRow, Diagnostic, EffectiveRow, FrequencyRow, FunctionRow, Host, IdleRow,
    Loss, Overhead, PhaseRow, SCHEMA, Snapshot, Source, StackRow, Tool, VERSION, Window,
};
use crate::model::{Spans, StackTotals, Topology, clusters::ClusterResidency, power::CpuResidency};

/// A process that appears in the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLabel {
    /// Its name; empty if it could not be read.
    pub comm: String,
    /// Whether it is a driver process.
    pub is_driver: bool,
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
    /// Exact totals of marks.
    pub totals: &'a StackTotals,
    /// Sections one by one.
    pub spans: &'a Spans,
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
            phases: self.phases(),
            stacks: self.stacks(),
            functions: self.functions(),
            cpus: self.cpus(),
            clusters: self.clusters(),
            overhead: self.overhead.clone(),
            loss: self.loss.clone(),
            diagnostics: self.diagnostics(),
            notes: self.notes.clone(),
        }
    }

    fn phases(&self) -> Vec<PhaseRow> {
        let unknown = ProcessLabel::default();
        let rows = self.totals.phases().into_iter().map(|((pid, tag), total)| {
            let process = self.processes.get(&pid).unwrap_or(&unknown);
            let times = self.spans.phase(pid, tag).filter(|times| !times.is_empty());
            let quantile = |q: f64| times.map(|times| times.value_at_quantile(q));
            PhaseRow {
                pid,
                comm: process.comm.clone(),
                role: if process.is_driver { "driver" } else { "application" }.into(),
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
        let rows = self.totals.stacks().into_iter().map(|sum| StackRow {
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
            .spans
            .functions()
            .map(|(key, sum)| {
                let row = FunctionRow {
                    pid: key.pid,
                    layer: key.tag.layer().code().into(),
                    phase: key.tag.phase().code().into(),
                    name: self
                        .totals
                        .names
                        .get(&key.name)
                        .cloned()
                        .unwrap_or_else(|| format!("?{:016x}", key.name)),
                    count: sum.count,
                    total_ns: sum.total,
                    exclusive_ns: sum.exclusive,
                    p50_ns: sum.times.value_at_quantile(0.5),
                    p99_ns: sum.times.value_at_quantile(0.99),
                    max_ns: sum.times.max(),
                };
                (key.pid, key.tag, row)
            })
            .collect();
        rows.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
        rows.into_iter().map(|(.., row)| row).collect()
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
