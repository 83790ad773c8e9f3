//! One replay: from the inputs through the accounting into the model.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind},
    layer::Layer,
};
use thiserror::Error;

use super::{
    accounting_pass::{Pass, Results},
    batches::Division,
    event_order::Sorter,
    events, html,
    input::{Contents, Input, InputError},
    trace_survey::Plan,
};
use crate::model::{
    Findings, Marks, Model, Topology,
    causality::Questions,
    energy::EnergyModel,
    findings::{RunFacts, Sums},
    input::Observer,
    limits::Limits,
    plurals::{counted, one_or_many},
    run_facts::{Clock, Host, KeptSums, Loss, MarksSeen, Overhead, ProcessLabel, Source, SourceKind, Window},
    scheduling::NamedThread,
    section::{Section, SectionObserver},
    thread_name_table::ThreadNameTable,
    timeline::Timelines,
    topology::{ClusterDescription, NO_CLUSTERS, TopologyError},
};

/// Options of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Time range; `None`: from the trace's own markers, or all of it.
    pub range: Option<TimeRange>,
    /// Topology of the host; `None`: as the trace describes it.
    pub topology: Option<Topology>,
    /// CPUs that form a cluster, in place of the host's clusters.
    pub clusters: Vec<ClusterDescription>,
    /// Energy model of CPUs and clusters, if energy is estimated.
    pub energy_model: Option<EnergyModel>,
    /// Processes known to be drivers.
    pub drivers: BTreeSet<u32>,
    /// Questions about the causes of work.
    pub questions: Questions,
    /// Whether to report every function of every thread separately.
    pub with_details: bool,
    /// Whether to keep the sequence of states of CPUs, clusters and threads, for timelines.
    pub with_steps: bool,
    /// Limits of the tables.
    pub limits: Limits,
}

/// Range of time in a trace, in its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant, ns.
    pub begin: u64,
    /// Last instant, ns.
    pub end: u64,
}

impl TimeRange {
    /// The whole trace.
    pub(crate) const ALL: Self = Self { begin: 0, end: u64::MAX };
}

/// Reason why a replay has no result.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The clusters asked for are invalid.
    #[error(transparent)]
    Clusters(#[from] TopologyError),
    /// There is no event in the input.
    #[error(
        "no trace event in {files}: {what}; expected the text of ftrace (trace, trace_pipe), `trace-cmd report`, systrace (HTML too), atrace or Perfetto's systrace export, trace-cmd's trace.dat, or a trace of Perfetto, plain or packed by gzip or zstd"
    )]
    NoEvents {
        /// Names of the inputs.
        files: String,
        /// Contents found instead.
        what: String,
    },
    /// There are events, but none that says anything about the network, the CPUs or the threads.
    #[error(
        "no mark, power event or scheduling event in {files}, only {count} {}, such as {example}; record them with `trace-cmd record -e power -e sched`, and marks by atrace or trace_marker",
        one_or_many(*count, "other", "others")
    )]
    NoUsefulEvents {
        /// Names of the inputs.
        files: String,
        /// Number of events.
        count: u64,
        /// Name of one of them.
        example: String,
    },
    /// The files were recorded with different clocks.
    #[error(
        "{first} was recorded with clock {clock}, {other} with clock {other_clock}: times of different clocks cannot be merged; replay them one by one, or record both with one clock (`trace-cmd record -C mono`)"
    )]
    Clocks {
        /// Name of a file.
        first: String,
        /// Clock of that file.
        clock: String,
        /// Name of another file.
        other: String,
        /// Clock of the other file.
        other_clock: String,
    },
    /// There are events, but none in the range.
    #[error("no event between {begin} and {end} s; the trace goes from {first} to {last} s")]
    NotInRange {
        /// Begin of the range, s.
        begin: String,
        /// End of the range, s.
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
/// When an input cannot be opened, or when there is no event in any of them. Damage is no error: readable parts are
/// taken, and the others counted.
pub fn replay(options: &Options) -> Result<Replayed, ReplayError> {
    replay_divided(options, Division::suited(options.files.len()))
}

/// Replays the inputs and hands out their sections in the order in which they end. Where the inputs have to be gone through
/// again, so are the sections: `start` is called at the begin of each pass, and returns who takes those of this pass.
///
/// # Errors
/// As of [`replay`].
pub fn replay_with_sections<T>(
    options: &Options,
    start: &mut dyn FnMut() -> T,
) -> Result<Replayed, ReplayError>
where
    T: FnMut(&Section<'_>) + 'static,
{
    replay_with_observer(options, &mut || Observer::new(SectionObserver::new(start())))
}

/// Replays the inputs and shows everything that the model takes to an observer: `start` returns that of each pass.
///
/// # Errors
/// As of [`replay`].
pub fn replay_with_observer(
    options: &Options,
    start: &mut dyn FnMut() -> Observer,
) -> Result<Replayed, ReplayError> {
    replay_observed(options, Division::suited(options.files.len()), &mut || Some(start()))
}

/// Replays with a given division of the work, which the results do not depend on.
pub(super) fn replay_divided(options: &Options, division: Division) -> Result<Replayed, ReplayError> {
    replay_observed(options, division, &mut || None)
}

fn replay_observed(
    options: &Options,
    division: Division,
    observer: &mut dyn FnMut() -> Option<Observer>,
) -> Result<Replayed, ReplayError> {
    let inputs = options.files.iter().map(|file| Input::open(file)).collect::<Result<Vec<_>, _>>()?;
    one_clock(&inputs)?;
    let mut new_pass = |plan| {
        let mut pass = Pass::new(options, plan);
        pass.survey.is_declared_by_all = inputs.iter().all(Input::declares_window);
        pass.results.model.observer = observer();
        pass
    };
    let plan = Plan { range: options.range, ..Plan::default() };
    let mut pass = new_pass(plan);
    events::visit(&inputs, division, &mut pass);
    if pass.survey.is_out_of_order {
        // The order of time determines the state at the begin of the window, and the assignment of records.
        pass = new_pass(Plan::default());
        let mut sorter = Sorter::new(&mut pass);
        events::visit(&inputs, division, &mut sorter);
        let events = sorter.sorted();
        let mut survey = pass.survey.anew();
        events.visit(&mut survey);
        pass.replan(survey.plan(options.range));
        events.visit(&mut pass);
    } else {
        let plan = pass.survey.plan(options.range);
        if plan != pass.plan {
            pass = new_pass(plan);
            events::visit(&inputs, division, &mut pass);
        }
    }
    finish(pass, options, &inputs)
}

/// Results of a replay.
pub struct Replayed {
    model: Model,
    host: Host,
    /// CPUs of the trace; none where it has no power event.
    cpus: BTreeSet<u32>,
    timelines: Option<Timelines>,
    threads: Vec<NamedThread>,
    thread_names: ThreadNameTable,
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
    /// Returns how many events of the traces are in the window.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.loss.records_drained
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> Findings<'_> {
        let run = RunFacts {
            host: Host { cpus: self.cpus.len() as u32, ..self.host.clone() },
            window: self.window.clone(),
            source: Source {
                kind: SourceKind::Replay,
                marks: MarksSeen::Trace,
                express: None,
                files: self.files.clone(),
                engines: Vec::new(),
            },
            processes: &self.processes,
            threads: Cow::Borrowed(&self.threads),
            thread_names: Some(&self.thread_names),
            energy_model: self.energy_model.as_ref(),
            rails: None,
            device_usage: None,
            device_clocks: Vec::new(),
            evidence: None,
            verify: None,
            perf_counts: None,
            overhead: self.overhead.clone(),
            loss: self.loss.clone(),
            diagnostics: Cow::Borrowed(&self.diagnostics),
            notes: self.notes.clone(),
            with_details: self.with_details,
        };
        let cpus = self.cpus.iter().copied();
        self.model.findings(run, Sums::recorded(&self.model, cpus, self.window.end_ns))
    }

    /// Returns the sequence of states of CPUs and clusters; `None` when it was not asked for, or there is no power
    /// event.
    #[must_use]
    pub fn timelines(&self) -> Option<&Timelines> {
        self.timelines.as_ref()
    }

    /// Returns the model of the marks.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.model.marks
    }
}

fn finish(mut pass: Pass, options: &Options, inputs: &[Input]) -> Result<Replayed, ReplayError> {
    let files: Vec<String> = inputs.iter().map(|input| input.name().to_owned()).collect();
    let Some((first, last)) = pass.survey.extent() else { return Err(no_events(pass, &files, inputs)) };
    if let Some(example) = pass.counts.only_others() {
        let count = pass.counts.all;
        return Err(ReplayError::NoUsefulEvents { files: files.join(", "), count, example });
    }
    let Some((begin, end)) = pass.window() else {
        let TimeRange { begin, end } = pass.plan.range.unwrap_or(TimeRange::ALL);
        return Err(ReplayError::NotInRange {
            begin: seconds(begin),
            end: seconds(end),
            first: seconds(first),
            last: seconds(last),
        });
    };
    pass.end();
    let lost = pass.losses();
    let Pass { accounts, results, counts, host, mut notes, .. } = pass;
    results.wrong.map_or(Ok(()), Err)?;
    let Results { mut model, mut cpus, thread_names, .. } = results;
    let has_power = cpus.has_events();
    if has_power {
        cpus.settle(&mut model)?;
    }
    let timelines = model.timelines_until(end);
    let Model { marks, scheduling, diagnostics, .. } = &mut model;
    let scheduling = scheduling.get_or_insert_default();
    let processes = accounts.names().map(|(pid, comm)| (pid, ProcessLabel { comm })).collect();
    let window = Window { clock: Clock::Trace, begin_ns: begin, end_ns: end };
    let (of_marks, marking) = (accounts.processes(), accounts.marking_processes());
    let threads = scheduling.named_threads(&window, |tid, pid| {
        let pid = pid.or_else(|| of_marks.get(&tid).copied()).unwrap_or(tid);
        // A trace has all threads of the host: with marks, only those of the processes that write them matter.
        let is_shown = marking.is_empty() || marking.contains(&pid);
        is_shown.then(|| (pid, thread_names.get(tid, Some(pid)).unwrap_or_default()))
    });
    if scheduling.lacks_wakeups() {
        notes.push(
            "context switches, but no sched_waking and no sched_wakeup in the trace: waiting for a CPU after a sleep counts as sleeping"
                .into(),
        );
    }
    if scheduling.forgotten > 0 {
        notes.push(format!(
            "{} {} not told one by one: more are kept with a larger --memory",
            scheduling.forgotten,
            one_or_many(scheduling.forgotten, "thread that had ended is", "threads that had ended are")
        ));
    }
    notes.extend(accounts.note_on_twins());
    let left_out = accounts.finish(marks, diagnostics);
    if left_out > 0 {
        notes.push(format!(
            "{left_out} {} not told one by one: raise --memory to see more",
            one_or_many(left_out, "section that had not ended is", "sections that had not ended are")
        ));
    }
    let mut diagnostics = diagnostics.counts();
    marks.add_unfinished(&mut diagnostics);
    if counts.marks > 0 && !marks.shows(Layer::Runtime) {
        notes.push(
            "no mark of the NN runtime (LR) in the trace: was its trace tag (nnapi) on when it was recorded?"
                .into(),
        );
    }
    if has_power && cpus.clusters_are_presumed {
        notes.push(NO_CLUSTERS.into());
    }
    notes.extend(counts.without_unit.as_deref().map(without_unit));
    notes.extend(inputs.iter().filter_map(Input::note));
    let loss = Loss {
        records_produced: counts.events.saturating_add(lost.events),
        records_drained: counts.events,
        records_dropped: lost.events,
        at_least: lost.at_least,
        dropped_by_cpu: lost.by_cpu,
        ..Loss::default()
    };
    notes.extend(scheduling.note_on_missing(&loss));
    Ok(Replayed {
        model,
        host,
        cpus: if has_power { cpus.shown() } else { BTreeSet::new() },
        timelines,
        energy_model: options.energy_model.clone(),
        window,
        threads,
        thread_names,
        files,
        processes,
        diagnostics,
        // Everything here comes from records. The state of a CPU is unknown in the time of its losses.
        loss: loss.with_incomplete(KeptSums { cpus: true, totals: lost.events == 0, reports: false }),
        overhead: Overhead { marks: counts.marks, power_events: counts.power_events, ..Overhead::default() },
        notes,
        with_details: options.with_details,
    })
}

/// Returns the error of inputs without an event: what they hold instead.
fn no_events(pass: Pass, files: &[String], inputs: &[Input]) -> ReplayError {
    let is_page = |input: &Input| html::looks_like_html(input.head());
    let kinds = pass.results.model.diagnostics.counts();
    let of_no_cpu = kinds.iter().find(|(kind, _)| *kind == DiagnosticKind::CpuOutOfRange);
    let what = match pass.counts.unreadable {
        _ if let Some((_, found)) = of_no_cpu => {
            let example = String::from_utf8_lossy(&found.example[..found.len as usize]);
            let events = match found.count {
                1 => "its one event".to_owned(),
                many => format!("each of its {many} events"),
            };
            format!("{events} is of a CPU that no machine has, first {example}")
        }
        0 if inputs.iter().any(|input| matches!(input.contents(), Contents::Perfetto(_))) => {
            "a trace of Perfetto without ftrace events and without track events".into()
        }
        0 if inputs.iter().any(is_page) => {
            "a web page without the text of a trace; give the trace that the page was made of".into()
        }
        0 => "it is empty, or holds comments only".into(),
        lines => format!("{} in no format that is known", counted(lines, "line")),
    };
    let of_inputs = inputs.iter().filter_map(|input| Some(format!("{} {}", input.name(), input.encoding()?)));
    let without_unit = pass.counts.without_unit.as_deref().map(without_unit);
    let all = [what].into_iter().chain(of_inputs).chain(without_unit).chain(pass.notes);
    let what = all.collect::<Vec<_>>().join("; ");
    ReplayError::NoEvents { files: files.join(", "), what }
}

/// Checks that all files have the same clock: others cannot be ordered.
fn one_clock(inputs: &[Input]) -> Result<(), ReplayError> {
    let mut known = inputs.iter().filter_map(|input| Some((input.name(), input.clock_name()?)));
    let Some((first, clock)) = known.next() else { return Ok(()) };
    match known.find(|(_, other)| *other != clock) {
        None => Ok(()),
        Some((other, other_clock)) => Err(ReplayError::Clocks {
            first: first.to_owned(),
            clock: clock.into_owned(),
            other: other.to_owned(),
            other_clock: other_clock.into_owned(),
        }),
    }
}

/// Returns the reason why a time is not read, and a remedy.
fn without_unit(time: &str) -> String {
    format!(
        "the time {time} is a number without a unit, as of the clocks counter, x86-tsc and uptime, or of boot in trace-cmd's report: \
         give the trace.dat itself, or record with a clock of nanoseconds (`echo mono > trace_clock`, `trace-cmd record -C mono`)"
    )
}

/// Formats a time (ns) as seconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
