//! Makes a [`Snapshot`] out of what the model found.

mod causality;
mod energy;
mod marks;
mod power;
mod room;
mod threads;

use std::collections::BTreeMap;

pub(crate) use threads::{note_on_missing, threads};

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind};

use super::snapshot::{Diagnostic, Host, Loss, Overhead, SCHEMA, Snapshot, Source, Tool, VERSION, Window};
use crate::model::{
    Marks, Topology, clusters::ClusterResidency, energy::EnergyModel, power::CpuResidency,
    reports::ReportSums, sleeps::Sleeps, stacks::Totals,
};

/// A process that appears in the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessLabel {
    /// Its name; empty if it could not be read.
    pub comm: String,
}

/// What a snapshot is made of.
pub(crate) struct Parts<'a> {
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
    /// What the reports are sums of.
    pub report_sums: &'a ReportSums,
    /// Exact totals of marks; only those that count.
    pub totals: &'a Totals,
    /// How CPUs belong together.
    pub topology: &'a Topology,
    /// What each CPU did.
    pub cpus: &'a [CpuResidency],
    /// What each cluster did, in the order of the topology.
    pub clusters: &'a [ClusterResidency],
    /// How long single stays in idle states were.
    pub sleeps: &'a Sleeps,
    /// What CPUs and clusters cost; `None` leaves energy out.
    pub energy_model: Option<&'a EnergyModel>,
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
    pub(crate) fn snapshot(&self) -> Snapshot {
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
            iterations: self.iterations(),
            accounts: self.accounts(),
            groups: self.groups(),
            missing: self.missing(),
            explanation: self.explanation(),
            hand_overs: self.hand_overs(),
            threads: Vec::new(),
            counters: self.counters(),
            tracks: self.tracks(),
            cpus: self.cpus(),
            clusters: self.clusters(),
            energy: self.energy(),
            evidence: None,
            verify: None,
            overhead: self.overhead.clone(),
            loss: Loss { summed: self.summed(), ..self.loss.clone() },
            diagnostics: self.diagnostics(),
            notes: [self.notes.clone(), self.causality_notes(), self.notes_on_room()].concat(),
        }
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
