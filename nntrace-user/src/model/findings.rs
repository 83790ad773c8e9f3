//! Everything that one run found, as the views take it.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind};

use super::{
    Marks, Model, Scheduling, Topology,
    app_report_sums::ReportSums,
    app_reports,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuResidency,
    device_clocks::{DeviceClock, DeviceClocks},
    device_usage::DeviceUsage,
    devices::Devices,
    energy::EnergyModel,
    idle_stays::IdleStays,
    initial_state::{InitialCpu, InitialState},
    perf_counts::PerfCounts,
    rails::Rails,
    run_facts::{Evidence, Host, Loss, Overhead, ProcessLabel, Source, Verify, Window},
    scheduling::NamedThread,
    stacks::Totals,
    thread_name_table::ThreadNameTable,
    usage::UsageTables,
};

/// Everything that one run found in one window of time.
pub struct Findings<'a> {
    /// Facts that no record shows.
    pub(crate) run: RunFacts<'a>,
    /// Sums of marks.
    pub(crate) marks: &'a Marks,
    /// Exact sums.
    pub(crate) sums: Sums,
    /// Accelerators and GPUs.
    pub(crate) devices: &'a Devices,
    /// Clocks of devices, by the events of a trace.
    pub(crate) device_clocks: &'a DeviceClocks,
    /// How CPUs belong together.
    pub(crate) topology: &'a Topology,
    /// State of the CPUs at the begin of the window.
    pub(crate) initial_state: &'a InitialState,
    /// Residency of each cluster, in the order of the topology.
    pub(crate) clusters: Vec<ClusterResidency>,
    /// How long single stays in idle states were.
    pub(crate) idle_stays: &'a IdleStays,
    /// States of threads as they came; `None` where context switches were not taken.
    pub(crate) scheduling: Option<&'a Scheduling>,
    /// Resources that sections used; `None` where no context switch was taken.
    pub(crate) usage: Option<UsageTables>,
}

/// Facts about a run that no record shows.
pub(crate) struct RunFacts<'a> {
    /// Host.
    pub(crate) host: Host,
    /// Time that was measured.
    pub(crate) window: Window,
    /// Source of the records.
    pub(crate) source: Source,
    /// Processes by id.
    pub(crate) processes: &'a BTreeMap<u32, ProcessLabel>,
    /// States of threads; none where context switches were not taken.
    pub(crate) threads: Cow<'a, [NamedThread]>,
    /// Names of all threads that a trace has context switches of, `None` where `threads` has them all.
    pub(crate) thread_names: Option<&'a ThreadNameTable>,
    /// Prices of idle states and frequencies; `None` leaves energy out.
    pub(crate) energy_model: Option<&'a EnergyModel>,
    /// Measured energy of the host's rails; `None` where it was not looked for.
    pub(crate) rails: Option<Rails>,
    /// Use of accelerators and GPUs; `None` where it was not looked for.
    pub(crate) device_usage: Option<DeviceUsage>,
    /// Clocks of devices, as the kernel counted them; none where it was not asked.
    pub(crate) device_clocks: Vec<DeviceClock>,
    /// Counters of the kernel about power, beside its events; `None` in a replay.
    pub(crate) evidence: Option<Evidence>,
    /// Our totals against the kernel's, where that was asked for.
    pub(crate) verify: Option<Verify>,
    /// Counts of performance events, where any were asked for.
    pub(crate) perf_counts: Option<PerfCounts>,
    /// Cost of measuring.
    pub(crate) overhead: Overhead,
    /// Losses.
    pub(crate) loss: Loss,
    /// Diagnostics.
    pub(crate) diagnostics: Cow<'a, [(DiagnosticKind, DiagnosticCount)]>,
    /// Notes on what could not be measured.
    pub(crate) notes: Vec<String>,
    /// Whether every function of every thread is shown separately.
    pub(crate) with_details: bool,
}

/// Sums that the kernel programs keep exactly, whatever records are lost; in a replay, those of its records.
pub(crate) struct Sums {
    /// Residency of each CPU.
    pub(crate) cpus: Vec<CpuResidency>,
    /// Totals of marks; only those that count.
    pub(crate) totals: Totals,
    /// Sums of the reports.
    pub(crate) reports: ReportSums,
}

impl Sums {
    /// The sums of the records, with these CPUs until `end` (ns).
    pub(crate) fn recorded(model: &Model, cpus: impl Iterator<Item = u32>, end: u64) -> Self {
        let residency = |cpu| {
            // The model began with the activity; where it is known from counts.
            let initial = InitialCpu { activity: None, ..model.power.initial_state().of(cpu) };
            model.power.reading(cpu).since(&initial, end)
        };
        Self {
            cpus: cpus.map(residency).collect(),
            totals: model.marks.sites.totals(),
            reports: app_reports::recorded_sums(&model.marks),
        }
    }
}

impl Findings<'_> {
    /// Returns begin and end of the window, ns.
    #[must_use]
    pub(crate) fn window(&self) -> (u64, u64) {
        (self.run.window.begin_ns, self.run.window.end_ns)
    }
}

impl Model {
    /// Everything that was found until the end of the window.
    pub(crate) fn findings<'a>(&'a self, run: RunFacts<'a>, sums: Sums) -> Findings<'a> {
        let usage = self.usage.as_ref().zip(self.scheduling.as_ref());
        Findings {
            usage: usage.map(|(usage, scheduling)| {
                usage.tables(run.window.end_ns, scheduling, &run.threads, &self.marks)
            }),
            clusters: self.power.clusters_until(run.window.end_ns),
            run,
            marks: &self.marks,
            sums,
            devices: &self.devices,
            device_clocks: &self.device_clocks,
            topology: self.power.topology(),
            initial_state: self.power.initial_state(),
            idle_stays: self.power.idle_stays(),
            scheduling: self.scheduling.as_ref(),
        }
    }
}
