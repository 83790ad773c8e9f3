//! Everything that one run found, as the views take it.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind};

use super::{
    Marks, Topology,
    clusters::ClusterResidency,
    energy::EnergyModel,
    facts::{Evidence, Host, Loss, Overhead, ProcessLabel, Source, Verify, Window},
    power::CpuResidency,
    reports::ReportSums,
    scheduling::NamedThread,
    sleeps::Sleeps,
    stacks::Totals,
};

/// What one run found in one window of time.
pub struct Findings<'a> {
    /// The machine.
    pub host: Host,
    /// The time.
    pub window: Window,
    /// Where the records came from.
    pub source: Source,
    /// The processes, by id.
    pub processes: &'a BTreeMap<u32, ProcessLabel>,
    /// What the records of marks add up to.
    pub marks: &'a Marks,
    /// What the reports are sums of.
    pub report_sums: ReportSums,
    /// Exact totals of marks; only those that count.
    pub totals: Totals,
    /// What threads did; none where context switches were not taken.
    pub threads: Cow<'a, [NamedThread]>,
    /// How CPUs belong together.
    pub topology: &'a Topology,
    /// What each CPU did.
    pub cpus: Cow<'a, [CpuResidency]>,
    /// What each cluster did, in the order of the topology.
    pub clusters: Cow<'a, [ClusterResidency]>,
    /// How long single stays in idle states were.
    pub sleeps: &'a Sleeps,
    /// What CPUs and clusters cost; `None` leaves energy out.
    pub energy_model: Option<&'a EnergyModel>,
    /// What the kernel shows of power beside its events; `None` of a file.
    pub evidence: Option<Evidence>,
    /// Our totals against the kernel's, where that was asked for.
    pub verify: Option<Verify>,
    /// What measuring cost.
    pub overhead: Overhead,
    /// What was lost.
    pub loss: Loss,
    /// What was odd.
    pub diagnostics: Cow<'a, [(DiagnosticKind, DiagnosticCount)]>,
    /// What could not be measured.
    pub notes: Vec<String>,
    /// Whether to show every function of every thread by itself.
    pub with_details: bool,
}
