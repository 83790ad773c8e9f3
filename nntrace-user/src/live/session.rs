//! One run: the kernel programs, the targets, and the model that the records feed.

mod counters;
mod draining;
mod following;
mod open_sections;
mod results;
mod window;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use nntrace_common::{hidl_calls, mark, window::Window};
use thiserror::Error;

use counters::Counters;

use super::{
    calls::{CallProbes, CallSpec},
    driver_calls::{DriverCalls, DriverSelection},
    engine_probes::{EngineError, EngineOptions, EngineProbes},
    express::{Express, ExpressLane, offers::Offers},
    host_readers::{HostReaders, HostReadings},
    kernel::{Kernel, KernelError, KernelOptions, has_uprobes},
    kernel_comparison::Verifier,
    known_hidl_calls,
    opened_files::FileFollower,
    other_power_events::Baseline,
    perf_events::{PerfCounters, PerfEvent, PerfEventError},
    probes::{MissedSince, Placement, Probes},
    ring_drain::Rings,
    stop_guard::StopGuard,
    sysfs,
    target::{Held, HeldEvent, Object, PinnedFile, Process, Processes, SymbolSpec, entry_offset},
    threads, tracefs,
};
use crate::model::{
    Model, Scheduling, Topology,
    causality::Questions,
    cpu_residency::CpuReading,
    energy::EnergyModel,
    initial_state::InitialState,
    input::Observer,
    limits::Limits,
    opened_files::FileObserver,
    run_facts::{Evidence, ProbedEngine, ProcessLabel, Verify},
};

/// Time for a launched program to reach its entry point.
const ENTRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Source of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkSource {
    /// No marks.
    #[default]
    None,
    /// Probes on functions.
    Functions,
    /// Writes of the targets to `trace_marker`. Functions are not probed then: a mark that passes through one is also
    /// written.
    Writes,
}

/// Options of a session.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct SessionOptions {
    /// Source of marks.
    pub marks: MarkSource,
    /// Functions that write marks.
    pub symbols: Vec<SymbolSpec>,
    /// Use of the express lane.
    pub express: ExpressLane,
    /// Engines to probe beside them.
    pub engines: EngineOptions,
    /// Drivers whose calls are sections.
    pub driver_calls: DriverSelection,
    /// Functions whose calls are recorded.
    pub calls: Vec<CallSpec>,
    /// Performance events to count by section.
    pub counters: Vec<PerfEvent>,
    /// Placement of probes on functions that begin with a nop.
    pub placement: Placement,
    /// Files to probe besides those that the targets map.
    pub libraries: Vec<PathBuf>,
    /// Processes known to be drivers.
    pub drivers: BTreeSet<u32>,
    /// Whether to report every function of every thread separately.
    pub with_details: bool,
    /// Whether to keep the sequence of states of CPUs and clusters, for timelines.
    pub with_steps: bool,
    /// Whether to measure when threads ran, waited for a CPU, or slept.
    pub scheduling: bool,
    /// Whether to compare our totals with the kernel's.
    pub verify: bool,
    /// Topology; `None`: as in sysfs.
    pub topology: Option<Topology>,
    /// Energy model of CPUs and clusters, if energy is estimated.
    pub energy_model: Option<EnergyModel>,
    /// Readers of what the host measures beside events.
    pub readers: HostReaders,
    /// Questions about the causes of work.
    pub questions: Questions,
    /// Limits of the tables.
    pub limits: Limits,
    /// Options of the kernel side.
    pub kernel: KernelOptions,
}

impl SessionOptions {
    /// Takes no marks from functions where the kernel cannot probe any; also returns a note then.
    ///
    /// # Errors
    /// When calls of functions are asked for, which nothing else shows.
    fn for_this_kernel(self) -> Result<(Self, Option<String>), KernelError> {
        let wants_calls = !self.calls.is_empty();
        if !wants_calls && self.marks != MarkSource::Functions || has_uprobes() {
            return Ok((self, None));
        }
        if wants_calls {
            return Err(KernelError::NoUprobes);
        }
        let options = Self {
            marks: MarkSource::None,
            express: ExpressLane::Never,
            engines: EngineOptions::default(),
            libraries: Vec::new(),
            ..self
        };
        Ok((options, Some(KernelError::NoUprobes.to_string())))
    }
}

/// Reason why a session does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The kernel side does not work.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The engines that are asked for are not known.
    #[error(transparent)]
    Engines(#[from] EngineError),
    /// The performance events that are asked for cannot be counted.
    #[error(transparent)]
    Counters(#[from] PerfEventError),
}

/// Run from the first probe to the last reading.
pub struct Session {
    kernel: Kernel,
    rings: Rings,
    express: Express,
    express_lane: ExpressLane,
    offers: Offers,
    probes: Probes,
    engines: EngineProbes,
    driver_calls: DriverCalls,
    calls: CallProbes,
    /// Performance events, if any are counted.
    counters: Option<Counters>,
    marks: MarkSource,
    /// Follower of the files that targets open, if somebody wants them.
    files: Option<FileFollower>,
    /// Command, while it may be stopped.
    held: Option<u32>,
    /// Process that continues it where we do not.
    stop_guard: Option<StopGuard>,
    /// Processes that were gone before the files they had loaded could be searched.
    unsearched: BTreeSet<u32>,
    /// Processes that have `trace_marker` open, as the user was informed.
    writers: BTreeSet<u32>,
    processes: Processes,
    /// Traced processes that are alive, as far as is known, with their start times: ids are reused.
    alive: BTreeMap<u32, u64>,
    /// All processes traced so far.
    labels: BTreeMap<u32, ProcessLabel>,
    most_labels: usize,
    topology: Topology,
    energy_model: Option<EnergyModel>,
    /// Readers of the host, until the window is over.
    readers: Option<HostReaders>,
    /// What they read, once the window is over.
    measured: Option<HostReadings>,
    /// State of the CPUs at the begin of the window.
    initial: InitialState,
    evidence: Baseline,
    model: Model,
    /// Last known names of threads, where scheduling is measured.
    thread_names: BTreeMap<u32, String>,
    with_details: bool,
    with_steps: bool,
    verifies: bool,
    /// Interface calls that were met before the meanings of their names were known.
    unanswered: u64,
    window: Window,
    /// Readings of the CPUs at the end of the window, and that end (ns), once it is over.
    last: Option<(Vec<CpuReading>, u64)>,
    /// Comparison with the kernel's totals, if it is asked for.
    verifier: Option<Verifier>,
    /// Result of the comparison, once the window is over.
    verified: Option<Verify>,
    /// Facts from the kernel's files, once the window is over.
    kernel_evidence: Option<Evidence>,
    notes: Vec<String>,
}

impl Session {
    /// Loads the programs and attaches those on process events. No process is traced yet, and nothing counts before
    /// [`Session::begin`].
    ///
    /// # Errors
    /// When the kernel side does not work, or an engine map cannot be read.
    pub fn start(options: SessionOptions) -> Result<Self, StartError> {
        let (options, without_uprobes) = options.for_this_kernel()?;
        let emit_begins = options.questions.need_all_begins();
        let events = PerfCounters::open(&options.counters)?;
        let (mut kernel, rings) = Kernel::load(KernelOptions {
            emit_begins,
            calls: !options.calls.is_empty(),
            counters: options.counters.len(),
            ..options.kernel
        })?;
        let root = Path::new(sysfs::CPUS);
        let (found, note) = sysfs::topology(root);
        let mut notes = Vec::from_iter(without_uprobes);
        let topology = options.topology.unwrap_or_else(|| {
            notes.extend(note);
            found
        });
        kernel.set_window(Window::AHEAD)?;
        if options.marks == MarkSource::Functions {
            kernel.load_slowest(&options.symbols);
        }
        if !kernel.attach_process_events()? {
            notes.push(format!(
                "children of the targets are not followed: {}; then start again",
                tracefs::lacking()
            ));
        }
        let counters = Counters::start(events, &mut kernel, &mut notes)?;
        let scheduling =
            options.scheduling.then(|| Scheduling::starting_at(0).with_room_for(options.limits.threads));
        let mut model =
            Model::new(&options.limits, options.questions, scheduling).with_drivers(options.drivers);
        for name in known_hidl_calls::well_known() {
            let hash = mark::name_hash(name.as_bytes(), 0);
            model.marks.names.insert_for_good(hash, name.as_bytes());
            kernel.add_meaning(hash, hidl_calls::meaning(name.as_bytes()))?;
        }
        if options.marks == MarkSource::Writes {
            kernel.attach_writes()?;
        }
        let symbols = if options.marks == MarkSource::Functions { options.symbols } else { Vec::new() };
        let mut probes = Probes::new(symbols, options.placement, options.engines.own_library());
        let mut engines = EngineProbes::new(&options.engines, emit_begins)?;
        for library in &options.libraries {
            match Object::at(library) {
                Ok(object) => {
                    let objects = std::slice::from_ref(&object);
                    engines.follow(&mut kernel, &mut model.marks.names, None, objects);
                    probes.search_file(&mut kernel, object);
                }
                Err(error) => notes.push(format!("--lib {}: {error}", library.display())),
            }
        }
        let driver_calls = DriverCalls::new(options.driver_calls, &mut kernel);
        if options.express != ExpressLane::Never {
            kernel.allow_lanes()?;
            engines.take_lanes(&mut kernel)?;
        }
        if !options.calls.is_empty() {
            kernel.attach_call_events()?;
        }
        Ok(Self {
            rings: Rings::new(rings),
            express: Express::new(emit_begins),
            express_lane: options.express,
            offers: Offers::new(options.express != ExpressLane::Never),
            probes,
            engines,
            driver_calls,
            calls: CallProbes::new(options.calls),
            counters,
            marks: options.marks,
            files: None,
            held: None,
            stop_guard: None,
            unsearched: BTreeSet::new(),
            writers: BTreeSet::new(),
            processes: Processes::default(),
            alive: BTreeMap::new(),
            labels: BTreeMap::new(),
            most_labels: options.limits.processes,
            initial: InitialState::default(),
            evidence: Baseline::default(),
            topology,
            energy_model: options.energy_model,
            readers: Some(options.readers),
            measured: None,
            model,
            thread_names: BTreeMap::new(),
            with_details: options.with_details,
            with_steps: options.with_steps,
            verifies: options.verify,
            unanswered: 0,
            window: Window::AHEAD,
            last: None,
            kernel_evidence: None,
            verifier: None,
            verified: None,
            notes,
            kernel,
        })
    }

    /// Shows an observer everything that the model takes from here on, beside those before it.
    pub fn observe_by(&mut self, observer: Observer) {
        self.model.observe_by(observer);
    }

    /// Passes the files that targets have and open to an observer, from here on; to be called before the first is traced, on a
    /// kernel side that is loaded to report them.
    pub fn follow_files(&mut self, observer: FileObserver) {
        match self.kernel.attach_files() {
            Ok(()) => self.files = Some(FileFollower::new(observer, self.engines.hooks_folder())),
            Err(error) => {
                self.notes.push(format!("the files that the targets open are not recorded: {error}"));
            }
        }
    }

    /// Traces a running process and its descendants.
    ///
    /// # Errors
    /// When the table of targets is full. A process that ends in the meantime is no error.
    pub fn trace(&mut self, process: &Process) -> Result<(), KernelError> {
        self.adopt(process.pid, &process.comm, true)?;
        match self.processes.descendants(&[process.pid]) {
            Ok(children) => children.iter().try_for_each(|child| self.adopt(child.pid, &child.comm, false)),
            Err(error) => {
                self.notes.push(format!("children of {} are not traced: {error}", process.pid));
                Ok(())
            }
        }
    }

    fn adopt(&mut self, pid: u32, comm: &str, is_target: bool) -> Result<(), KernelError> {
        self.kernel.add_target(pid)?;
        log::info!("process {pid} ({comm}) is a target");
        // Of one that has ended since, the next look finds nothing.
        let started = self.processes.by_pid(pid).map_or(0, |process| process.started);
        self.label(pid, comm, started);
        if let Some(files) = &mut self.files {
            files.found(&self.processes, pid, is_target);
        }
        self.probe(pid, MissedSince::Nothing);
        Ok(())
    }

    /// Traces a command that is held at its exec: lets it run to its entry point, where the libraries it is linked
    /// with are mapped, and probes them. The command stays held there. From then on it is stopped while it loads libraries,
    /// under the eyes of the guard.
    ///
    /// # Errors
    /// When the table of targets is full, or the guard has ended. A command that cannot be held there is noted, and held no more.
    pub fn trace_held(&mut self, held: &mut Held, guard: StopGuard) -> Result<(), KernelError> {
        let pid = held.pid();
        let comm = self.processes.by_pid(pid).map(|process| process.comm).unwrap_or_default();
        self.adopt(pid, &comm, true)?;
        if self.follows_functions()
            && let Err(reason) = self.run_to_entry(held)
        {
            self.notes.push(format!(
                "the command could not be held at its entry point ({reason}): marks of its libraries may be missing \
                 until they were found"
            ));
        }
        self.probe(pid, MissedSince::Nothing);
        // Not before: its own start would be stopped at the wrong place.
        self.hold_while_loading(pid, guard)
    }

    fn run_to_entry(&mut self, held: &mut Held) -> Result<(), String> {
        let program = Path::new("/proc").join(held.pid().to_string()).join("exe");
        let program = PinnedFile::at(&program).map_err(|error| error.to_string())?;
        let offset = entry_offset(&program).map_err(|error| error.to_string())?;
        let probe = self.kernel.hold_at_entry(&program, offset).map_err(|error| error.to_string())?;
        let event = held.run_until_signal(Signal::SIGSTOP, ENTRY_TIMEOUT);
        self.kernel.release_entry(probe).map_err(|error| error.to_string())?;
        match event.map_err(|error| error.to_string())? {
            HeldEvent::TimedOut => Err(format!("it did not get there within {ENTRY_TIMEOUT:?}")),
            // The exit status explains why it ended before it began.
            HeldEvent::Signalled | HeldEvent::Ended(_) => Ok(()),
        }
    }

    /// Takes the name of a process that started at this time.
    fn label(&mut self, pid: u32, comm: &str, started: u64) {
        self.alive.insert(pid, started);
        if self.model.scheduling.is_some() {
            self.thread_names
                .extend(threads::threads(pid).into_iter().map(|thread| (thread.tid, thread.comm)));
        }
        let label = ProcessLabel { comm: comm.to_owned() };
        // For processes that are gone, only the names are lost.
        if self.labels.len() < self.most_labels || self.labels.contains_key(&pid) {
            self.labels.insert(pid, label);
        }
    }

    /// Looks again at every traced process, as libraries may have been mapped and names changed, and at which CPUs
    /// are online.
    pub fn refresh(&mut self) {
        // Notifications of loaders first, as they carry the time since when marks may be missed.
        self.drain();
        self.log_left_out();
        if self.last.is_none() {
            // A kernel that cannot run programs (before 5.10) has the events only.
            let _ = self.kernel.compare_online(Path::new(sysfs::CPUS));
        }
        let pids: Vec<u32> = self.alive.keys().copied().collect();
        for pid in pids {
            let process = self.processes.by_pid(pid).ok();
            if let Some(process) = process.filter(|process| self.alive.get(&pid) == Some(&process.started)) {
                self.label(pid, &process.comm, process.started);
                self.probe(pid, MissedSince::SinceLastLook);
            } else {
                self.alive.remove(&pid);
                self.driver_calls.forget(pid);
                self.probes.forget(pid);
                self.offers.forget(pid);
                self.kernel.forget_async_runs(pid);
                log::info!("target {pid} is gone");
                if let Err(error) = self.kernel.remove_target(pid) {
                    self.notes.push(error.to_string());
                }
            }
        }
        self.driver_calls.rest(&mut self.kernel);
    }

    /// Returns descriptors that become readable when [`Session::drain`] should be called at once.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn alarms(&self) -> io::Result<Vec<OwnedFd>> {
        let mut alarms = self.rings.alarms()?;
        alarms.extend(self.kernel.opened_files_alarm()?);
        Ok(alarms)
    }

    /// Returns the number of probed functions.
    #[must_use]
    pub fn probe_count(&self) -> usize {
        self.probes.count() + self.kernel.engine_probes() + self.kernel.call_probes()
    }

    /// Returns a text on the files searched when no mark function was found; `None` when one was, or none is wanted.
    #[must_use]
    pub fn no_marks(&self, target: &str) -> Option<String> {
        let is_without = self.kernel.engine_probes() == 0
            && self.kernel.call_probes() == 0
            && !self.driver_calls.are_followed();
        if self.marks == MarkSource::Functions && is_without {
            self.probes.nothing_found(target, self.engines.wanted().as_deref())
        } else {
            None
        }
    }

    /// Returns the engines that are probed.
    #[must_use]
    pub fn engines(&self) -> &[ProbedEngine] {
        self.engines.engines()
    }

    /// Takes back a note that is true no longer.
    pub fn take_back(&mut self, note: &str) {
        self.notes.retain(|other| other != note);
    }

    /// Adds a note on something that could not be measured.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}
