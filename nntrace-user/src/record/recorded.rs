//! Replay of a recording: its events into a model, and its last state beside them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind},
    record::Record,
};

use super::{
    decode::{Event, EventReader},
    early::{self, EarlyPass},
    error::ReadError,
    facts::{Checkpoint, RunDescription},
    format::{BlockHeader, Stream},
    order::{Ordered, Visit},
    read::Files,
};
use crate::model::{
    Findings, Model, Scheduling,
    causality::Questions,
    energy::EnergyModel,
    findings::RunFacts,
    input::Observer,
    limits::Limits,
    plurals::one_or_many,
    run_facts::{KeptSums, Loss, Overhead, ProcessLabel, Source, SourceKind, Window},
    scheduling::NamedThread,
    timeline::Timelines,
};

/// Notes on damage at most; more are counted.
const MOST_NOTES: usize = 20;

/// Options of replaying a recording.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct ReplayOptions {
    /// Questions about the causes of work, in place of those of the recording.
    pub questions: Option<Questions>,
    /// Limits of the tables, in place of those of the recording.
    pub limits: Option<Limits>,
    /// Energy model, in place of that of the recording.
    pub energy_model: Option<EnergyModel>,
    /// Whether to report every function of every thread separately, even if the recording did not.
    pub with_details: bool,
    /// Whether to keep the sequence of states of CPUs and clusters, for timelines.
    pub with_timelines: bool,
    /// Whether to keep every hand-over.
    pub with_hand_overs: bool,
    /// Whether to keep every iteration.
    pub with_iterations: bool,
    /// The slowest iterations to keep, in place of those of the recording.
    pub slowest: Option<u32>,
}

/// Results of a recording, up to one of its states.
pub struct Recorded {
    folder: PathBuf,
    number: Option<u64>,
    pass: Pass,
    state: Box<Checkpoint>,
    /// Window of what is there.
    window: Window,
    overhead: Overhead,
    processes: BTreeMap<u32, ProcessLabel>,
    threads: Vec<NamedThread>,
    diagnostics: Vec<(DiagnosticKind, DiagnosticCount)>,
    energy_model: Option<EnergyModel>,
    loss: Loss,
    notes: Vec<String>,
    with_details: bool,
}

/// Replays a recording.
///
/// # Errors
/// When it cannot be read, or has not what the questions need. Damage is no error: the rest is read, and what is missing
/// counted.
pub fn replay(folder: &Path, options: &ReplayOptions) -> Result<Recorded, ReadError> {
    replay_observed(folder, options, None)
}

/// Replays a recording and shows everything that its model takes to an observer.
///
/// # Errors
/// As for [`replay`].
pub fn replay_with_observer(
    folder: &Path,
    options: &ReplayOptions,
    observer: Observer,
) -> Result<Recorded, ReadError> {
    replay_observed(folder, options, Some(observer))
}

fn replay_observed(
    folder: &Path,
    options: &ReplayOptions,
    observer: Option<Observer>,
) -> Result<Recorded, ReadError> {
    let files = Files::open(folder)?;
    let (until, state, damage) = files.state()?;
    let mut recorded = Recorded::new(&files, state.clone(), damage, options)?;
    recorded.pass.model.observer = observer;
    let mut events = Ordered::new(&files, state.first_event(), until);
    recorded.begin(&mut events, until);
    recorded.take(&mut events, until, state);
    recorded.notes.extend(note_on_end(&files, &recorded.state, until));
    Ok(recorded)
}

/// Replays a recording from state to state, and shows the results at each, until all was shown or `show` breaks off.
///
/// # Errors
/// As for [`replay`].
pub fn play(
    folder: &Path,
    options: &ReplayOptions,
    mut show: impl FnMut(&Recorded) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let files = Files::open(folder)?;
    let (last, state, damage) = files.state()?;
    let first = state.first_event();
    let mut recorded = Recorded::new(&files, state, damage, options)?;
    let mut events = Ordered::new(&files, first, last);
    recorded.begin(&mut events, last);
    // Of states before what is kept nothing is there to show.
    for (until, state) in files.states().filter(|(until, _)| *until >= first || *until == last) {
        recorded.take(&mut events, until, state);
        if until == last {
            recorded.notes.extend(note_on_end(&files, &recorded.state, until));
        }
        if show(&recorded).is_break() {
            break;
        }
    }
    Ok(())
}

impl Recorded {
    /// Creates the results of no event yet, of a recording with this last state.
    fn new(
        files: &Files,
        state: Box<Checkpoint>,
        damage: Vec<String>,
        options: &ReplayOptions,
    ) -> Result<Self, ReadError> {
        let mut questions = questions(options, &state)?;
        questions.hand_overs |= options.with_hand_overs;
        questions.every_iteration = options.with_iterations;
        questions.slowest = options.slowest.or(questions.slowest);
        let scheduling = state.run.scheduling.then(|| Scheduling::starting_at(0));
        let limits = options.limits.unwrap_or(state.run.limits);
        let scheduling = scheduling.map(|scheduling| scheduling.with_room_for(limits.threads));
        let model = Model::new(&limits, questions, scheduling).with_drivers(state.run.drivers.clone());
        Ok(Self {
            folder: files.folder.clone(),
            number: files.number,
            pass: Pass {
                model,
                with_timelines: options.with_timelines,
                begin: state.kept.as_ref().map(|kept| kept.begin_ns),
                counts: Counts::default(),
                now: 0,
                damage,
            },
            window: early::window(&state),
            overhead: state.overhead.clone(),
            processes: BTreeMap::new(),
            threads: Vec::new(),
            diagnostics: Vec::new(),
            energy_model: options.energy_model.clone().or_else(|| state.energy_model.clone()),
            loss: Loss::default(),
            notes: Vec::new(),
            with_details: options.with_details || state.with_details,
            state,
        })
    }

    /// Takes what is known of the time before the events that are kept, if older ones were given up.
    fn begin(&mut self, events: &mut Ordered<'_>, until: u64) {
        let Self { pass: Pass { model, with_timelines, damage, .. }, state, .. } = self;
        if let Some(kept) = &state.kept {
            early::begin(model, state, kept, *with_timelines);
            events.visit((state.first_event() - 1).min(until), &mut EarlyPass { model, damage });
        }
    }

    /// Takes the events up to a state, and the state.
    fn take(&mut self, events: &mut Ordered<'_>, until: u64, mut state: Box<Checkpoint>) {
        // What was there when an earlier state was written may have been given up since.
        state.kept.clone_from(&self.state.kept);
        let Self { pass, .. } = self;
        events.visit(until, pass);
        if let Some(host) = state.host_at_begin.as_ref().filter(|_| pass.model.waits_for_cpus()) {
            // Its event is missing, and the state has it, too.
            pass.model.begin_power(&host.topology, state.window.begin_ns, &host.initial, pass.with_timelines);
        }
        state.complete(&mut pass.model.marks);
        let missing = state.count_to(until).saturating_sub(pass.counts.events);
        self.window = early::window(&state);
        self.overhead = overhead(&state, &pass.counts);
        self.loss = loss(&state, missing);
        self.notes = early::notes(&state);
        self.notes.extend_from_slice(&state.notes);
        self.notes.extend(note_on_damage(pass.damage.clone(), missing, state.kept.is_some()));
        self.threads = threads(&pass.model, &state);
        let processes = state.processes.iter();
        self.processes = processes.map(|(pid, comm)| (*pid, ProcessLabel { comm: comm.clone() })).collect();
        self.diagnostics = state.diagnostics();
        self.state = state;
    }

    /// Returns the time that the recorded run had lasted, or what is kept of it, ns.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        self.window.length_ns()
    }
}

/// Returns the losses, with this many events that are missing.
fn loss(state: &Checkpoint, missing: u64) -> Loss {
    let mut loss = state.loss.clone();
    loss.records_unreadable = loss.records_unreadable.saturating_add(missing);
    let totals = !loss.makes_incomplete("phases");
    if state.kept.is_some() {
        // All sums are those of the events.
        let totals = totals && missing == 0 && loss.records_dropped == 0;
        return loss.with_incomplete(KeptSums { cpus: true, totals, reports: false });
    }
    if missing == 0 {
        return loss;
    }
    // The sums are those of the state, and as complete as they were.
    let reports = !loss.makes_incomplete("reports");
    loss.with_incomplete(KeptSums { cpus: true, totals, reports })
}

/// Returns the cost of measuring. Of a part of a run, events are those of the part.
fn overhead(state: &Checkpoint, counts: &Counts) -> Overhead {
    let overhead = state.overhead.clone();
    if state.kept.is_none() {
        return overhead;
    }
    Overhead {
        // Each section has two.
        marks: counts.sections * 2,
        engine_calls: None,
        power_events: counts.power,
        sched_events: overhead.sched_events.map(|_| counts.sched),
        ..overhead
    }
}

impl Recorded {
    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> Findings<'_> {
        let Self { state, window, .. } = self;
        let sums = match &state.kept {
            Some(_) => early::sums(&self.pass.model, window),
            None => state.sums(),
        };
        let is_whole = state.kept.is_none();
        let run = RunFacts {
            host: state.host.clone(),
            window: window.clone(),
            source: Source {
                kind: SourceKind::Replay,
                files: vec![self.folder.display().to_string()],
                ..state.source.clone()
            },
            processes: &self.processes,
            threads: Cow::Borrowed(&self.threads),
            thread_names: None,
            energy_model: self.energy_model.as_ref(),
            // Rails, devices and counters of the kernel are of the whole run.
            rails: state.rails.clone().filter(|_| is_whole),
            device_usage: state.device_usage.clone().filter(|_| is_whole),
            device_clocks: if is_whole { state.device_clocks.clone() } else { Vec::new() },
            evidence: state.evidence.clone().filter(|_| is_whole),
            verify: state.verify.clone().filter(|_| is_whole),
            perf_counts: state.perf_counts.clone().filter(|_| is_whole),
            overhead: self.overhead.clone(),
            loss: self.loss.clone(),
            diagnostics: Cow::Borrowed(&self.diagnostics),
            notes: self.notes.clone(),
            with_details: self.with_details,
        };
        self.pass.model.findings(run, sums)
    }

    /// Returns the sequence of states of CPUs and clusters; `None` when it was not asked for.
    #[must_use]
    pub fn timelines(&self) -> Option<Timelines> {
        self.pass.model.timelines_until(self.window.end_ns)
    }

    /// Returns how many events there are, without those that are missing.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.pass.counts.events
    }

    /// Returns the description of the run.
    #[must_use]
    pub fn run(&self) -> &RunDescription {
        &self.state.run
    }

    /// Returns the number of the recording, which is that of no other; `None` where every header is damaged.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.number
    }
}

/// Returns the questions of a replay.
fn questions(options: &ReplayOptions, state: &Checkpoint) -> Result<Questions, ReadError> {
    let recorded = &state.run.questions;
    let Some(questions) = &options.questions else { return Ok(recorded.clone()) };
    if questions.need_all_begins() && !recorded.need_all_begins() {
        return Err(ReadError::Question(
            "the recording has not the begin of every section, which --iteration-root and .dot files need: record with \
             --iteration-root or with --causes"
                .into(),
        ));
    }
    Ok(questions.clone())
}

/// Returns the states of threads in the window.
fn threads(model: &Model, state: &Checkpoint) -> Vec<NamedThread> {
    let names: BTreeMap<(u32, u32), &str> =
        state.threads.iter().map(|thread| ((thread.pid, thread.tid), thread.comm.as_str())).collect();
    let window = early::window(state);
    let named = |scheduling: &Scheduling| {
        scheduling.named_threads(&window, |tid, pid| {
            let pid = pid.unwrap_or(tid);
            let of_process = || state.processes.get(&pid).map(String::as_str);
            let comm = names.get(&(pid, tid)).copied().or_else(of_process);
            Some((pid, comm.unwrap_or_default().to_owned()))
        })
    };
    model.scheduling.as_ref().map(named).unwrap_or_default()
}

/// Returns notes on damaged places.
fn note_on_damage(mut damage: Vec<String>, missing: u64, is_part: bool) -> Vec<String> {
    let more = damage.len().saturating_sub(MOST_NOTES);
    damage.truncate(MOST_NOTES);
    damage.extend((more > 0).then(|| {
        let are = one_or_many(more as u64, "place of the recording is", "places of the recording are");
        format!("{more} more {are} damaged")
    }));
    if missing > 0 {
        let totals = if is_part { "lack them, too" } else { "are those that the kernel kept" };
        let are = one_or_many(missing, "event of the recording is", "events of the recording are");
        damage.push(format!("{missing} {are} missing; the totals {totals}"));
    }
    damage
}

/// Returns a note on a recording that was not ended.
fn note_on_end(files: &Files, state: &Checkpoint, until: u64) -> Option<String> {
    let later = files.blocks.iter().map(|block| &block.header).filter(|header| header.first > until);
    let later: u64 = later.map(|header| u64::from(header.events)).sum();
    let end = state.window.end_ns.saturating_sub(state.window.begin_ns);
    (!state.is_last).then(|| {
        format!(
            "the recording was not ended, or is still being written: its last state is of {} ms after its begin, and {later} {} \
             left out",
            end / 1_000_000,
            one_or_many(later, "later event is", "later events are")
        )
    })
}

/// Pass over the events.
struct Pass {
    model: Model,
    with_timelines: bool,
    /// Begin of what is kept of the run, ns; `None` if that is everything.
    begin: Option<u64>,
    counts: Counts,
    /// Time up to which everything has come, ns.
    now: u64,
    damage: Vec<String>,
}

/// Numbers of events.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// All events.
    events: u64,
    sections: u64,
    power: u64,
    sched: u64,
}

impl Counts {
    #[inline]
    fn add(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Record(Record::Span(_)) | Event::SpanAnywhere(_) => self.sections += 1,
            Event::Record(Record::Idle(_) | Record::Frequency(_) | Record::Hotplug(_)) => self.power += 1,
            Event::Record(Record::Sched(_)) => self.sched += 1,
            _ => {}
        }
    }
}

impl Visit for Pass {
    #[inline]
    fn event(&mut self, _stream: Stream, event: &Event, reader: &EventReader) {
        self.counts.add(event);
        for (hash, text) in reader.names() {
            self.model.marks.names.insert(hash, text);
        }
        match event {
            Event::Advance { until } if *until != u64::MAX => self.now = *until,
            // It ended before, and came with others that belong to what is kept.
            Event::Record(Record::Span(span)) | Event::SpanAnywhere(span)
                if self.begin.is_some_and(|begin| span.end <= begin) =>
            {
                return;
            }
            _ => {}
        }
        if let Some(input) = event.input(reader.content(), self.with_timelines) {
            self.model.apply(&input);
        }
    }

    fn missing(&mut self, stream: Stream, block: Option<&BlockHeader>, reason: Option<String>) {
        self.damage.extend(reason);
        if let Stream::Cpu(cpu) = stream {
            let (begin, end) = block
                .filter(|header| header.first_time <= header.last_time)
                .map_or((self.now, self.now), |header| (header.first_time, header.last_time));
            self.model.record(&Record::Lost { cpu, time: begin });
            if let Some(scheduling) = &mut self.model.scheduling {
                scheduling.lost(cpu, end);
            }
        }
    }
}
