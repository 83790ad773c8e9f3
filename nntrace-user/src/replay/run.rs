//! One replay: inputs through the accounting into the model.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind},
    layer::Layer,
};
use thiserror::Error;

use super::{
    cpus::CpuResults,
    events,
    input::{Input, InputError},
    pass::{Pass, Results},
};
use crate::{
    model::{
        Marks, Scheduling, Topology,
        causality::Questions,
        energy::EnergyModel,
        reports,
        steps::Lanes,
        topology::{ClusterDescription, NO_CLUSTERS, TopologyError},
    },
    report::{
        build::{self, Parts, ProcessLabel},
        snapshot::{Host, KeptSums, Loss, Overhead, Snapshot, Source, ThreadRow, Window},
    },
};

/// What is to be replayed, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// The time to look at; `None`: what the trace's own markers say, or all of it.
    pub range: Option<TimeRange>,
    /// The machine; `None`: as the trace describes it.
    pub topology: Option<Topology>,
    /// CPUs that form a cluster, whatever the machine's are.
    pub clusters: Vec<ClusterDescription>,
    /// What CPUs and clusters cost, if that is asked for.
    pub energy_model: Option<EnergyModel>,
    /// Processes that are drivers, whatever they show.
    pub drivers: BTreeSet<u32>,
    /// What is asked about the causes of work.
    pub questions: Questions,
    /// Whether to tell every function of every thread by itself.
    pub with_details: bool,
    /// Whether to keep what CPUs and clusters did in which order, for timelines.
    pub with_steps: bool,
}

/// A stretch of a trace, in its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant, ns.
    pub begin: u64,
    /// Last instant, ns.
    pub end: u64,
}

impl TimeRange {
    /// All there is.
    pub const ALL: Self = Self { begin: 0, end: u64::MAX };
}

/// Why nothing can be shown.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The clusters that were asked for are none.
    #[error(transparent)]
    Clusters(#[from] TopologyError),
    /// There is no event in the input.
    #[error(
        "no trace event in {files}: {what}; expected the text of ftrace (trace, trace_pipe), `trace-cmd report`, systrace (HTML too), atrace or Perfetto's systrace export, or trace-cmd's trace.dat, plain or packed by gzip or zstd"
    )]
    NoEvents {
        /// The inputs.
        files: String,
        /// What there is instead.
        what: String,
    },
    /// There are events, but none at that time.
    #[error("no event between {begin} and {end} s; the trace goes from {first} to {last} s")]
    NotInRange {
        /// First instant that was asked for, s.
        begin: String,
        /// Last one, s.
        end: String,
        /// First event, s.
        first: String,
        /// Last event, s.
        last: String,
    },
}

/// Replays the inputs.
///
/// # Errors
/// When an input cannot be opened, or when there is no event in any of them. Damage is no error: what can be read is
/// taken, and what cannot is counted.
pub fn replay(options: &Options) -> Result<Replayed, ReplayError> {
    let inputs = options.files.iter().map(|file| Input::open(file)).collect::<Result<Vec<_>, _>>()?;
    let mut range = options.range;
    let mut pass = Pass::new(options, range, false);
    events::visit(&inputs, &mut pass);
    // Reports, executions and clusters are told apart by time: what is out of order is read once more, and sorted.
    let keeps_all = pass.is_out_of_order;
    if keeps_all {
        pass = Pass::new(options, range, true);
        events::visit(&inputs, &mut pass);
    }
    if range.is_none() && pass.marked_range().is_some() {
        range = pass.marked_range();
        pass = Pass::new(options, range, keeps_all);
        events::visit(&inputs, &mut pass);
    }
    finish(pass, range, options, &inputs)
}

/// What came of a replay.
pub struct Replayed {
    marks: Marks,
    cpus: CpuResults,
    scheduling: Scheduling,
    threads: Vec<ThreadRow>,
    energy_model: Option<EnergyModel>,
    window: Window,
    files: Vec<String>,
    processes: BTreeMap<u32, ProcessLabel>,
    diagnostics: Vec<(DiagnosticKind, DiagnosticCount)>,
    loss: Loss,
    overhead: Overhead,
    notes: Vec<String>,
    with_details: bool,
}

impl Replayed {
    /// The results, as every view shows them.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let parts = Parts {
            host: Host { cpus: self.cpus.cpus.len() as u32, ..Host::default() },
            window: self.window.clone(),
            source: Source { kind: "replay".into(), marks: "trace".into(), files: self.files.clone() },
            processes: &self.processes,
            marks: &self.marks,
            report_sums: &reports::recorded_sums(&self.marks),
            totals: &self.marks.sites.totals(),
            topology: &self.cpus.topology,
            cpus: &self.cpus.cpus,
            clusters: &self.cpus.clusters,
            sleeps: &self.cpus.sleeps,
            energy_model: self.energy_model.as_ref(),
            overhead: self.overhead.clone(),
            loss: self.loss.clone(),
            diagnostics: &self.diagnostics,
            notes: self.notes.clone(),
            with_details: self.with_details,
        };
        Snapshot { threads: self.threads.clone(), ..parts.snapshot() }
    }

    /// What CPUs and clusters did in which order; `None` when it was not asked for, or there is no power event.
    #[must_use]
    pub fn lanes(&self) -> Option<&Lanes> {
        self.cpus.lanes.as_ref()
    }

    /// Whether threads ran, waited or slept; empty where the trace has no context switches.
    #[must_use]
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Everything that the marks told, one by one where it is kept so.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }
}

fn finish(
    mut pass: Pass,
    range: Option<TimeRange>,
    options: &Options,
    inputs: &[Input],
) -> Result<Replayed, ReplayError> {
    let files: Vec<String> = inputs.iter().map(|input| input.name().to_owned()).collect();
    let Some((first, last)) = pass.seen else {
        let what = match pass.counts.unreadable {
            0 => "it is empty, or holds comments only".into(),
            lines => format!("{lines} lines in no format that is known"),
        };
        let what = [&[what][..], &pass.notes].concat().join("; ");
        return Err(ReplayError::NoEvents { files: files.join(", "), what });
    };
    let Some((begin, end)) = pass.window() else {
        let TimeRange { begin, end } = range.unwrap_or(TimeRange::ALL);
        return Err(ReplayError::NotInRange {
            begin: seconds(begin),
            end: seconds(end),
            first: seconds(first),
            last: seconds(last),
        });
    };
    pass.end();
    let Pass { accounts, results, counts, mut notes, .. } = pass;
    if let Some(error) = results.wrong {
        return Err(error.into());
    }
    let Results { mut marks, cpus, scheduling, thread_names, mut oddities, .. } = results;
    let processes = accounts.names().map(|(pid, comm)| (pid, ProcessLabel { comm })).collect();
    let window = Window { clock: "trace".into(), begin_ns: begin, end_ns: end };
    let of_marks = accounts.processes();
    let threads = build::threads(&scheduling, &window, |tid, pid| {
        let pid = pid.or_else(|| of_marks.get(&tid).copied()).unwrap_or(tid);
        // All threads of the machine are in a trace: where there are marks, those of the processes that write them matter.
        let is_shown = of_marks.is_empty() || of_marks.values().any(|marking| *marking == pid);
        let comm = thread_names.get(&tid).map(|comm| String::from_utf8_lossy(comm).into_owned());
        is_shown.then(|| (pid, comm.unwrap_or_default()))
    });
    if scheduling.lacks_wakeups() {
        notes.push(
            "context switches, but no sched_wakeup in the trace: waiting for a CPU after a sleep counts as sleeping"
                .into(),
        );
    }
    accounts.finish(&mut marks, &mut oddities);
    let mut diagnostics = oddities.counts();
    marks.add_unfinished(&mut diagnostics);
    let cpus = cpus.finish(end)?;
    if counts.marks > 0 && !marks.shows(Layer::Runtime) {
        notes.push(
            "no mark of the NN runtime (LR) in the trace: was its trace tag (nnapi) on when it was recorded?"
                .into(),
        );
    }
    if cpus.clusters_are_presumed {
        notes.push(NO_CLUSTERS.into());
    }
    // A damaged line may claim any number.
    let lost = counts.lost.values().fold(0, |sum: u64, &lost| sum.saturating_add(lost));
    Ok(Replayed {
        marks,
        cpus,
        scheduling,
        energy_model: options.energy_model.clone(),
        window,
        threads,
        files,
        processes,
        diagnostics,
        loss: Loss {
            records_produced: counts.events.saturating_add(lost),
            records_drained: counts.events,
            records_dropped: lost,
            records_late: 0,
            dropped_by_cpu: counts.lost,
            ..Loss::default()
        }
        // All is made of records here. What was lost of a CPU's is time of which nothing is known.
        .with_incomplete(KeptSums { cpus: true, totals: lost == 0, reports: false }),
        overhead: Overhead { marks: counts.marks, power_events: counts.power_events, ..Overhead::default() },
        notes,
        with_details: options.with_details,
    })
}

/// A time (ns) as seconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
