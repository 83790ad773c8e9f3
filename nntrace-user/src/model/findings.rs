//! Everything that one run found, as the views take it.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind};

use super::{
    Marks, Model, Topology,
    clusters::ClusterResidency,
    energy::EnergyModel,
    facts::{Evidence, Host, Loss, Overhead, ProcessLabel, Source, Verify, Window},
    idle_stays::IdleStays,
    report_sums::ReportSums,
    reports,
    residency::CpuResidency,
    scheduling::NamedThread,
    stacks::Totals,
};

/// Everything that one run found in one window of time.
pub struct Findings<'a> {
    /// The host.
    pub(crate) host: Host,
    /// The time.
    pub(crate) window: Window,
    /// Where the records came from.
    pub(crate) source: Source,
    /// The processes, by id.
    pub(crate) processes: &'a BTreeMap<u32, ProcessLabel>,
    /// Sums of marks.
    pub(crate) marks: &'a Marks,
    /// Sums of the reports.
    pub(crate) report_sums: ReportSums,
    /// Exact totals of marks; only those that count.
    pub(crate) totals: Totals,
    /// States of threads; none where context switches were not taken.
    pub(crate) threads: Cow<'a, [NamedThread]>,
    /// How CPUs belong together.
    pub(crate) topology: &'a Topology,
    /// Residency of each CPU.
    pub(crate) cpus: Cow<'a, [CpuResidency]>,
    /// Residency of each cluster, in the order of the topology.
    pub(crate) clusters: Cow<'a, [ClusterResidency]>,
    /// How long single stays in idle states were.
    pub(crate) idle_stays: &'a IdleStays,
    /// Prices of idle states and frequencies; `None` leaves energy out.
    pub(crate) energy_model: Option<&'a EnergyModel>,
    /// Counters of the kernel about power, beside its events; `None` in a replay.
    pub(crate) evidence: Option<Evidence>,
    /// Our totals against the kernel's, where that was asked for.
    pub(crate) verify: Option<Verify>,
    /// Cost of measuring.
    pub(crate) overhead: Overhead,
    /// Losses.
    pub(crate) loss: Loss,
    /// Diagnostics.
    pub(crate) diagnostics: Cow<'a, [(DiagnosticKind, DiagnosticCount)]>,
    /// Notes on what could not be measured.
    pub(crate) notes: Vec<String>,
    /// Whether to show every function of every thread by itself.
    pub(crate) with_details: bool,
}

/// Facts about a run that no record shows.
pub(crate) struct RunFacts<'a> {
    pub(crate) host: Host,
    pub(crate) window: Window,
    pub(crate) source: Source,
    pub(crate) processes: &'a BTreeMap<u32, ProcessLabel>,
    pub(crate) threads: Cow<'a, [NamedThread]>,
    pub(crate) energy_model: Option<&'a EnergyModel>,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) verify: Option<Verify>,
    pub(crate) overhead: Overhead,
    pub(crate) loss: Loss,
    pub(crate) diagnostics: Cow<'a, [(DiagnosticKind, DiagnosticCount)]>,
    pub(crate) notes: Vec<String>,
    pub(crate) with_details: bool,
}

/// Sums that the kernel programs keep exactly, whatever records are lost; of a file, those of its records.
pub(crate) struct Sums {
    pub(crate) cpus: Vec<CpuResidency>,
    pub(crate) totals: Totals,
    pub(crate) reports: ReportSums,
}

impl Sums {
    /// The sums of the records, with these CPUs until `end` (ns).
    pub(crate) fn recorded(model: &Model, cpus: impl Iterator<Item = u32>, end: u64) -> Self {
        Self {
            cpus: cpus.map(|cpu| model.power.reading(cpu).until(end)).collect(),
            totals: model.marks.sites.totals(),
            reports: reports::recorded_sums(&model.marks),
        }
    }
}

impl Model {
    /// Everything that was found until the end of the window.
    pub(crate) fn findings<'a>(&'a self, run: RunFacts<'a>, sums: Sums) -> Findings<'a> {
        Findings {
            clusters: Cow::Owned(self.power.clusters_until(run.window.end_ns)),
            host: run.host,
            window: run.window,
            source: run.source,
            processes: run.processes,
            marks: &self.marks,
            report_sums: sums.reports,
            totals: sums.totals,
            threads: run.threads,
            topology: self.power.topology(),
            cpus: Cow::Owned(sums.cpus),
            idle_stays: self.power.idle_stays(),
            energy_model: run.energy_model,
            evidence: run.evidence,
            verify: run.verify,
            overhead: run.overhead,
            loss: run.loss,
            diagnostics: run.diagnostics,
            notes: run.notes,
            with_details: run.with_details,
        }
    }
}
