//! Everything that one run found, as the views take it.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind};

use super::{
    Marks, Topology,
    clusters::ClusterResidency,
    energy::EnergyModel,
    facts::{Evidence, Host, Loss, Overhead, ProcessLabel, Source, Verify, Window},
    idle_stays::IdleStays,
    power::CpuResidency,
    report_sums::ReportSums,
    scheduling::NamedThread,
    stacks::Totals,
};

/// What one run found in one window of time.
pub struct Findings<'a> {
    /// The machine.
    pub(crate) host: Host,
    /// The time.
    pub(crate) window: Window,
    /// Where the records came from.
    pub(crate) source: Source,
    /// The processes, by id.
    pub(crate) processes: &'a BTreeMap<u32, ProcessLabel>,
    /// What the records of marks add up to.
    pub(crate) marks: &'a Marks,
    /// What the reports are sums of.
    pub(crate) report_sums: ReportSums,
    /// Exact totals of marks; only those that count.
    pub(crate) totals: Totals,
    /// What threads did; none where context switches were not taken.
    pub(crate) threads: Cow<'a, [NamedThread]>,
    /// How CPUs belong together.
    pub(crate) topology: &'a Topology,
    /// What each CPU did.
    pub(crate) cpus: Cow<'a, [CpuResidency]>,
    /// What each cluster did, in the order of the topology.
    pub(crate) clusters: Cow<'a, [ClusterResidency]>,
    /// How long single stays in idle states were.
    pub(crate) idle_stays: &'a IdleStays,
    /// What CPUs and clusters cost; `None` leaves energy out.
    pub(crate) energy_model: Option<&'a EnergyModel>,
    /// What the kernel shows of power beside its events; `None` of a file.
    pub(crate) evidence: Option<Evidence>,
    /// Our totals against the kernel's, where that was asked for.
    pub(crate) verify: Option<Verify>,
    /// What measuring cost.
    pub(crate) overhead: Overhead,
    /// What was lost.
    pub(crate) loss: Loss,
    /// What was odd.
    pub(crate) diagnostics: Cow<'a, [(DiagnosticKind, DiagnosticCount)]>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
    /// Whether to show every function of every thread by itself.
    pub(crate) with_details: bool,
}
