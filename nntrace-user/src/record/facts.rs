//! State of a run in JSON: what no event shows, and the sums that the kernel programs keep exactly.

mod checks;
mod known_kinds;
mod open_row;

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{
    app_events::ExecutionCount,
    diagnostic::{DiagnosticCount, DiagnosticKind},
    power::Residency,
    record::{Total, TotalKey},
    stack::{Adds, PathStep},
    time_count::TimeCount,
};
use serde::{Deserialize, Serialize};

use open_row::OpenRow;

use super::{
    cause::Cause, clocks::ClockReading, file_identity::FileIdentity, hex, initial_host::InitialHost,
    kept::Kept,
};
use crate::model::{
    Findings, Marks,
    app_phases::{AppPhase, ReportSlot},
    app_report_sums::{ReportSums, SectionSum},
    causality::Questions,
    cpu_residency::CpuResidency,
    device_clocks::DeviceClock,
    device_usage::DeviceUsage,
    energy::EnergyModel,
    findings::Sums,
    initial_state::{FrequencySource, IdleSource},
    limits::Limits,
    marks::OpenSection,
    perf_counts::PerfCounts,
    rails::Rails,
    run_facts::{Evidence, Host, Loss, Overhead, Source, Verify, Window},
    stacks::{Paths, Totals},
};

/// Description of a run from its begin on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// Version of the program that records.
    pub tool: String,
    /// Arguments of the recorder.
    pub arguments: Vec<String>,
    /// Command that was launched; empty without one.
    pub command: Vec<String>,
    /// Folder in which the recorder, and the command, were started.
    pub folder: String,
    /// Variables of the environment, as far as they were allowed.
    pub environment: BTreeMap<String, String>,
    /// Name of the host.
    #[serde(default)]
    pub host_name: String,
    /// Clocks at the begin of the recording.
    pub clocks: ClockReading,
    /// Whether context switches are recorded.
    pub scheduling: bool,
    /// Questions about the causes of work.
    pub questions: Questions,
    /// Limits of the tables.
    pub limits: Limits,
    /// Processes known to be drivers.
    pub drivers: BTreeSet<u32>,
    /// Exit status of the command, once it has ended; of one that a signal killed, 128 and the signal's number.
    pub exit_status: Option<i32>,
}

/// State of a run after some events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Whether the run has ended.
    pub(super) is_last: bool,
    /// Description of the run.
    pub(super) run: RunDescription,
    /// Host when the window began; `None` before.
    pub(super) host_at_begin: Option<InitialHost>,
    /// Host.
    pub(super) host: Host,
    /// Window; its end is that of the state.
    pub(super) window: Window,
    /// Source of the records.
    pub(super) source: Source,
    /// Identities of the files that were probed, as far as they could be read.
    #[serde(default)]
    pub(super) probed: Vec<FileIdentity>,
    /// Names of processes.
    pub(super) processes: BTreeMap<u32, String>,
    /// Threads whose states are known, by name.
    pub(super) threads: Vec<ThreadName>,
    /// Energy model, if energy is estimated.
    pub(super) energy_model: Option<EnergyModel>,
    /// Measured energy of the host's rails; `None` where it was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rails: Option<Rails>,
    /// Use of accelerators and GPUs; `None` where it was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) device_usage: Option<DeviceUsage>,
    /// Clocks of devices, as the kernel counted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) device_clocks: Vec<DeviceClock>,
    /// Counters of the kernel about power.
    pub(super) evidence: Option<Evidence>,
    /// Comparison with the kernel's totals.
    pub(super) verify: Option<Verify>,
    /// Counts of performance events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) perf_counts: Option<PerfCounts>,
    /// Cost of measuring.
    pub(super) overhead: Overhead,
    /// Losses.
    pub(super) loss: Loss,
    /// Diagnostics.
    #[serde(deserialize_with = "known_kinds::diagnostics")]
    pub(super) diagnostics: Vec<DiagnosticRow>,
    /// Notes.
    pub(super) notes: Vec<String>,
    /// Whether every function of every thread is shown separately.
    pub(super) with_details: bool,
    /// Processes that the kernel programs saw to be drivers.
    pub(super) seen_drivers: BTreeSet<u32>,
    /// Processes that call a driver of the kernel themselves.
    pub(super) driver_callers: BTreeSet<u32>,
    /// Sections that are open.
    pub(super) open: Vec<OpenRow>,
    /// Names whose texts came later than the events.
    pub(super) late_names: Vec<LateName>,
    /// Steps of paths.
    pub(super) paths: Vec<PathRow>,
    /// Residency of each CPU.
    pub(super) cpus: Vec<CpuRow>,
    /// Totals of sections.
    pub(super) totals: Vec<TotalRow>,
    /// Sums of the reports.
    pub(super) reports: ReportRows,
    /// Begin of what is kept of the run; `None` if that is everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<Kept>,
    /// Reason for which the last seconds of the run were written.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_kinds::cause")]
    pub(super) cause: Option<Cause>,
    /// Whether less is kept than was asked for, for want of room.
    #[serde(default)]
    pub(super) lacks_room: bool,
    /// Blocks of the stream of the run that were given up for want of room.
    #[serde(default)]
    pub(super) run_blocks_given_up: u64,
}

/// Thread and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadName {
    /// Process.
    pub(super) pid: u32,
    /// Thread.
    pub(super) tid: u32,
    /// Name.
    pub(super) comm: String,
}

/// Count of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiagnosticRow {
    kind: DiagnosticKind,
    count: u64,
    first_ns: u64,
    tid: u32,
    /// Start of the first mark concerned, as it was: not every byte is text.
    example: Vec<u8>,
}

/// Name and its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LateName {
    /// Hash.
    #[serde(with = "hex")]
    pub(super) hash: u64,
    /// Text.
    pub(super) text: String,
}

/// Innermost step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PathRow {
    #[serde(with = "hex")]
    path: u64,
    #[serde(with = "hex")]
    parent: u64,
    tag: u8,
    class: u8,
    adds: u8,
}

/// Residency of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuRow {
    cpu: u32,
    idle: BTreeMap<u32, Residency>,
    idle_at_end: Option<u32>,
    running: Vec<RunningRow>,
    idle_unknown_ns: u64,
    offline_ns: u64,
    unknown_ns: u64,
    idle_source: IdleSource,
    frequency_source: FrequencySource,
}

/// Running time at a requested frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RunningRow {
    /// Frequency, kHz; `None` where it is not known.
    khz: Option<u32>,
    #[serde(flatten)]
    sum: TimeCount,
}

/// Totals of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct TotalRow {
    pid: u32,
    tid: u32,
    #[serde(with = "hex")]
    path: u64,
    slot: u32,
    count: u64,
    own_ns: u64,
    exclusive_ns: u64,
}

/// Sums of the reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportRows {
    starting_marks: Vec<String>,
    sections: Vec<SectionRow>,
    executions: Vec<ExecutionRow>,
}

/// Own time of the sections of a process and path in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SectionRow {
    report: u32,
    app_phase: AppPhase,
    pid: u32,
    #[serde(with = "hex")]
    path: u64,
    own_ns: u64,
}

/// Executions of a thread in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ExecutionRow {
    report: u32,
    app_phase: AppPhase,
    pid: u32,
    tid: u32,
    #[serde(flatten)]
    count: ExecutionCount,
}

impl Checkpoint {
    /// Creates the state that findings show. Only the last one has sections without an end.
    pub(super) fn new(
        findings: &Findings<'_>,
        run: RunDescription,
        host_at_begin: Option<InitialHost>,
        probed: Vec<FileIdentity>,
        late_names: Vec<LateName>,
        is_last: bool,
    ) -> Self {
        let Findings { run: facts, marks, sums, .. } = findings;
        let processes = facts.processes.iter().map(|(pid, label)| (*pid, label.comm.clone()));
        let threads = facts.threads.iter();
        let threads =
            threads.map(|thread| ThreadName { pid: thread.pid, tid: thread.tid, comm: thread.comm.clone() });
        let mut totals: Vec<TotalRow> = sums.totals.iter().map(TotalRow::new).collect();
        totals.sort_unstable();
        Self {
            is_last,
            run,
            host_at_begin,
            host: facts.host.clone(),
            window: facts.window.clone(),
            source: facts.source.clone(),
            probed,
            processes: processes.collect(),
            threads: threads.collect(),
            energy_model: facts.energy_model.cloned(),
            rails: facts.rails.clone(),
            device_usage: facts.device_usage.clone(),
            device_clocks: facts.device_clocks.clone(),
            evidence: facts.evidence.clone(),
            verify: facts.verify.clone(),
            perf_counts: facts.perf_counts.clone(),
            overhead: facts.overhead.clone(),
            loss: facts.loss.clone(),
            diagnostics: facts.diagnostics.iter().map(DiagnosticRow::new).collect(),
            notes: facts.notes.clone(),
            with_details: facts.with_details,
            seen_drivers: marks.seen_drivers.clone(),
            driver_callers: marks.driver_callers.clone(),
            open: marks.open.iter().map(OpenRow::new).collect(),
            late_names,
            paths: PathRow::all(&marks.paths),
            cpus: sums.cpus.iter().map(CpuRow::new).collect(),
            totals,
            reports: ReportRows::new(&sums.reports),
            kept: None,
            cause: None,
            lacks_room: false,
            run_blocks_given_up: 0,
        }
    }

    /// Returns the number of the first event from which on every event should be there.
    pub(super) fn first_event(&self) -> u64 {
        self.kept.as_ref().map_or(1, |kept| kept.first_event.max(1))
    }

    /// Returns how many of the events up to a number should be there, those before the first one aside.
    pub(super) fn count_to(&self, until: u64) -> u64 {
        until.saturating_sub(self.first_event() - 1)
    }

    /// Completes a model of the events by what the state has beside them.
    pub(super) fn complete(&self, marks: &mut Marks) {
        for name in &self.late_names {
            marks.names.insert(name.hash, name.text.as_bytes());
        }
        for (path, step) in self.path_steps() {
            marks.paths.insert(path, step);
        }
        marks.seen_drivers.extend(&self.seen_drivers);
        marks.driver_callers.extend(&self.driver_callers);
        marks.open.extend(self.open_sections());
    }

    /// Returns the sections that are open.
    pub(super) fn open_sections(&self) -> impl Iterator<Item = OpenSection> {
        self.open.iter().map(OpenRow::section)
    }

    /// Returns the innermost steps of paths.
    pub(super) fn path_steps(&self) -> impl Iterator<Item = (u64, PathStep)> {
        self.paths.iter().map(|row| {
            let PathRow { path, parent, tag, class, adds } = *row;
            (path, PathStep { parent, tag, class, adds: Adds::from_bits(adds), reserved: [0; 5] })
        })
    }

    /// Returns the exact sums.
    pub(super) fn sums(&self) -> Sums {
        Sums {
            cpus: self.cpus.iter().map(CpuRow::residency).collect(),
            totals: self.totals.iter().map(TotalRow::entry).collect(),
            reports: self.reports.sums(),
        }
    }

    /// Returns the diagnostics.
    pub(super) fn diagnostics(&self) -> Vec<(DiagnosticKind, DiagnosticCount)> {
        self.diagnostics.iter().map(DiagnosticRow::count).collect()
    }
}

impl DiagnosticRow {
    fn new((kind, count): &(DiagnosticKind, DiagnosticCount)) -> Self {
        let DiagnosticCount { count, first_ns, tid, len, example } = count;
        let example = example.get(..*len as usize).unwrap_or_default().to_vec();
        Self { kind: *kind, count: *count, first_ns: *first_ns, tid: *tid, example }
    }

    fn count(&self) -> (DiagnosticKind, DiagnosticCount) {
        let first = DiagnosticCount::first(self.first_ns, self.tid, &self.example);
        (self.kind, DiagnosticCount { count: self.count, ..first })
    }
}

impl PathRow {
    fn all(paths: &Paths) -> Vec<Self> {
        let rows = paths.iter().map(|(path, step)| {
            let PathStep { parent, tag, class, adds, .. } = *step;
            Self { path, parent, tag, class, adds: adds.bits() }
        });
        let mut rows: Vec<Self> = rows.collect();
        rows.sort_unstable_by_key(|row| row.path);
        rows
    }
}

impl CpuRow {
    fn new(residency: &CpuResidency) -> Self {
        let CpuResidency {
            cpu,
            idle,
            idle_at_end,
            running,
            idle_unknown_ns,
            offline_ns,
            unknown_ns,
            initial,
        } = residency;
        Self {
            cpu: *cpu,
            idle: idle.clone(),
            idle_at_end: *idle_at_end,
            running: running.iter().map(|(khz, sum)| RunningRow { khz: *khz, sum: *sum }).collect(),
            idle_unknown_ns: *idle_unknown_ns,
            offline_ns: *offline_ns,
            unknown_ns: *unknown_ns,
            idle_source: initial.0,
            frequency_source: initial.1,
        }
    }

    fn residency(&self) -> CpuResidency {
        CpuResidency {
            cpu: self.cpu,
            idle: self.idle.clone(),
            idle_at_end: self.idle_at_end,
            running: self.running.iter().map(|row| (row.khz, row.sum)).collect(),
            idle_unknown_ns: self.idle_unknown_ns,
            offline_ns: self.offline_ns,
            unknown_ns: self.unknown_ns,
            initial: (self.idle_source, self.frequency_source),
        }
    }
}

impl TotalRow {
    fn new((key, total): (&TotalKey, &Total)) -> Self {
        let TotalKey { path, tgid, tid, slot, .. } = *key;
        let Total { count, own, exclusive } = *total;
        Self { pid: tgid, tid, path, slot, count, own_ns: own, exclusive_ns: exclusive }
    }

    fn entry(&self) -> <Totals as IntoIterator>::Item {
        let Self { pid, tid, path, slot, count, own_ns, exclusive_ns } = *self;
        let key = TotalKey { path, tgid: pid, tid, slot, reserved: 0 };
        (key, Total { count, own: own_ns, exclusive: exclusive_ns })
    }
}

impl ReportRows {
    fn new(sums: &ReportSums) -> Self {
        let ReportSums { starting_marks, sections, executions } = sums;
        let mut sections: Vec<SectionRow> = sections.iter().map(SectionRow::new).collect();
        sections.sort_unstable();
        let executions = executions.iter().map(|(&(slot, pid, tid), &count)| {
            let ReportSlot { report, app } = slot;
            ExecutionRow { report, app_phase: app, pid, tid, count }
        });
        Self { starting_marks: starting_marks.clone(), sections, executions: executions.collect() }
    }

    fn sums(&self) -> ReportSums {
        let executions = self.executions.iter().map(|row| {
            let ExecutionRow { report, app_phase, pid, tid, count } = *row;
            ((ReportSlot { report, app: app_phase }, pid, tid), count)
        });
        ReportSums {
            starting_marks: self.starting_marks.clone(),
            sections: self.sections.iter().map(SectionRow::sum).collect(),
            executions: executions.collect(),
        }
    }
}

impl SectionRow {
    fn new(sum: &SectionSum) -> Self {
        let SectionSum { stretch: ReportSlot { report, app }, pid, path, own } = *sum;
        Self { report, app_phase: app, pid, path, own_ns: own }
    }

    fn sum(&self) -> SectionSum {
        let Self { report, app_phase, pid, path, own_ns } = *self;
        SectionSum { stretch: ReportSlot { report, app: app_phase }, pid, path, own: own_ns }
    }
}
