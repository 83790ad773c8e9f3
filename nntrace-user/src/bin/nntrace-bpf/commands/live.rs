//! One run of the command: targets, session, loop, end.

mod html_report;
mod kept_output;
mod otlp_metrics;
mod rates;
mod targets;

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    ops::ControlFlow,
    os::fd::OwnedFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use html_report::HtmlReport;
use kept_output::{scratch_file, show};
use log::LevelFilter;
use nix::sys::signal::Signal;
use nntrace_user::{
    export::{metrics::Metrics, swimlane::Counters},
    live::{
        itt,
        kernel::KernelOptions,
        probes::Placement,
        rails::RailReader,
        session::{Session, SessionOptions},
        target::{ChildOutput, Held, Launch, PidFd, Process, Processes, RunAs, Running},
    },
    model::{Findings, Topology, timeline::Timelines},
    record::{Cause, ClockReading},
    report::{probe_share, snapshot::Snapshot},
    tui::Health,
};
use otlp_metrics::OtlpMetrics;
use rates::Rates;
use targets::Targets;
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::record::{Due, Recording};
use crate::{
    arguments::{Level, Live, OutputKind},
    logging,
    metrics_server::{MetricsListener, Scrapes},
    output::{
        Output,
        files::{Files, Found},
        perfetto_trace::PerfettoTrace,
        screen::{Asked, Screen},
        thresholds,
    },
    signals::{self, EndSignals, WriteSignal},
    stderr,
};

/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the rings are drained when none of them asks for it.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Traces live, and records the run where that is asked for; returns the exit status.
pub fn run(cli: &Live, log_level: LevelFilter, mut recording: Option<Recording>) -> Result<ExitCode> {
    cli.check_counters()?;
    logging::start(log_level);
    let processes = targets(cli)?;
    let (topology, rails) = (cli.host.live_topology()?, cli.rails()?);
    let wants_screen = !cli.json_lines && Output::wants_screen(&cli.results) && io::stdin().is_terminal();
    let mut output = if cli.json_lines { Output::JsonLines } else { Output::open(&cli.results, &cli.host)? };
    let files = Files::open(&cli.results)?;
    let listener = cli.listen.map(MetricsListener::bind).transpose()?;
    let otlp = OtlpMetrics::start(cli, &processes)?;

    // While the terminal is ours, what the command prints would spoil it: it is kept, and shown at the end.
    let kept = if wants_screen && !cli.command.is_empty() { Some(scratch_file()?) } else { None };
    // Held from the start: if it cannot be started, nothing else need be.
    let (mut held, unseen) = launch(cli, kept.as_ref())?.unzip();

    let file_observer = recording.as_mut().and_then(Recording::take_file_observer);
    let options = session_options(cli, recording.as_ref(), topology, rails, file_observer.is_some());
    let mut session = Session::start(options)?;
    if let Some(observer) = recording.as_ref().and_then(Recording::observer) {
        session.observe_by(observer);
    }
    let report = HtmlReport::begin(cli, &mut session);
    let trace = perfetto_trace(cli, &mut session)?;
    if let Some(observer) = file_observer {
        session.follow_files(observer);
    }
    unseen.flatten().into_iter().for_each(|note| session.note(note));
    for process in &processes {
        session.trace(process)?;
    }
    if let Some(held) = &mut held {
        session.trace_held(held)?;
    }
    let has_target = held.is_some() || !processes.is_empty();
    let finds_nothing = has_target && finds_nothing(cli, &mut session);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // From here on the terminal may be ours, and the command runs: nothing may kill us half-way.
    let inside = runtime.enter();
    let is_flight = recording.as_ref().is_some_and(Recording::is_flight);
    let end = EndSignals::catch_but(is_flight.then_some(signals::WRITE))?;
    let write = WriteSignal::catch(is_flight)?;
    let scrapes = listener.map(MetricsListener::serve).transpose()?;
    if wants_screen {
        output = Output::Screen(Box::new(Screen::enter()?));
    }
    drop(inside);
    session.begin(cli.duration)?;
    // The command runs from here on.
    let command = held.map(Held::release).transpose()?;
    let mut run = Run {
        session,
        output,
        command,
        started: Instant::now(),
        rates: Rates::default(),
        recording,
        scrapes,
        otlp,
        target: cli.target(),
        ended: None,
        finds_nothing,
    };
    // A command has not loaded its libraries yet; in a process that runs, nothing may follow.
    if run.command.is_none() {
        run.tell_if_nothing_is_found();
    }
    let looped = runtime.block_on(run.go(cli, &processes, end, write));
    run.session.hold_no_more();
    let finished = run.session.finish();
    // The target was not ours to end, unless we started it.
    let code = run.end_command();
    finished?;
    run.tell_if_nothing_is_found();
    if run.ended.is_none() {
        run.note_survivors();
    }
    let timelines = run.session.timelines();
    let findings = run.session.findings()?;
    let status = run.command.as_ref().and_then(Running::exit_code);
    let recorded = run.recording.map(|recording| recording.finish(&findings, status)).transpose();
    let snapshot = last_snapshot(cli, &findings, timelines.as_ref());
    // None of these keeps the others from being written.
    let written = files.write(&Found {
        findings: &findings,
        snapshot: &snapshot,
        timelines: timelines.as_ref(),
        began_ns: ClockReading::now().real_time(snapshot.window.begin_ns),
        report: report.facts(&report.take_sections()),
        perfetto: &|out| {
            let Some(trace) = &trace else { return Ok(Vec::new()) };
            let counters = Counters::of(&findings, timelines.as_ref(), cli.results.causes.overhead);
            Ok(trace.write(out, &findings, &counters)?.into_iter().collect())
        },
    });
    let finished = run.output.finish(&snapshot, timelines.as_ref());
    let shown = kept.map_or(Ok(()), show);
    // What is left to be sent keeps nothing else waiting.
    if let Some(otlp) = run.otlp {
        otlp.finish(&findings, &snapshot);
    }
    looped.and(written).and(finished).and(shown)?;
    recorded?.iter().flatten().for_each(stderr::message);
    // A figure that is wrong, or over its limit, matters more than how the command ended.
    let differs = snapshot.verify.as_ref().is_some_and(|verify| !verify.passes);
    let tripped = thresholds::tripped(&snapshot, &cli.results.causes);
    Ok(if differs || tripped { ExitCode::from(thresholds::TRIPPED) } else { code })
}

/// Whether nothing to probe was found so far. Logs the engines that were.
fn finds_nothing(cli: &Live, session: &mut Session) -> bool {
    for engine in session.engines() {
        log::info!("{engine}");
    }
    let finds_nothing = session.no_marks(&cli.target()).is_some();
    if finds_nothing {
        // What a script starts does not wait for its probes either.
        session.expect_libraries();
    }
    finds_nothing
}

/// Returns the snapshot at the end.
fn last_snapshot(cli: &Live, findings: &Findings<'_>, timelines: Option<&Timelines>) -> Snapshot {
    let snapshot = Snapshot::of(findings);
    if cli.results.causes.overhead { snapshot.with_dispatch_overhead(findings, timelines) } else { snapshot }
}

/// Begins to collect a trace for Perfetto, if one is to be written.
fn perfetto_trace(cli: &Live, session: &mut Session) -> Result<Option<PerfettoTrace>> {
    if !cli.results.wants(OutputKind::Perfetto) {
        return Ok(None);
    }
    let (trace, observer) = PerfettoTrace::begin(ClockReading::now(), cli.results.min_span.unwrap_or(0))?;
    session.observe_by(observer);
    Ok(Some(trace))
}

/// Returns the options of the session.
fn session_options(
    cli: &Live,
    recording: Option<&Recording>,
    topology: Option<Topology>,
    rails: Option<RailReader>,
    reports_files: bool,
) -> SessionOptions {
    SessionOptions {
        marks: cli.mark_source(),
        symbols: cli.symbols(),
        express: cli.express_lane(),
        engines: cli.engines(),
        driver_calls: cli.driver_selection(),
        calls: recording.map(Recording::calls).unwrap_or_default().to_vec(),
        placement: if cli.fast_probes { Placement::Fast } else { Placement::Safe },
        libraries: cli.libraries.clone(),
        counters: cli.counters.clone(),
        drivers: cli.drivers.iter().copied().collect(),
        with_details: cli.results.detail,
        with_steps: cli.results.wants_steps(),
        scheduling: cli.level == Level::Sched,
        verify: cli.verify,
        topology,
        energy_model: cli.host.energy_model.clone(),
        rails,
        questions: recording
            .map_or_else(|| cli.results.questions(), |recording| recording.questions().clone()),
        limits: cli.results.limits(),
        kernel: KernelOptions {
            ring_bytes: cli.ring_size.saturating_mul(1024),
            map_memory: cli.map_memory,
            reports_files,
            reports_limits: recording.is_some(),
            ..KernelOptions::default()
        },
    }
}

/// The processes that `--pid` and `--comm` mean.
fn targets(cli: &Live) -> Result<Vec<Process>> {
    Ok(Processes::default().select(&cli.pids, &cli.comms)?)
}

/// Starts the command, if there is one; also returns a note on what will not be seen of it.
fn launch(cli: &Live, kept: Option<&File>) -> Result<Option<(Held, Option<String>)>> {
    if cli.command.is_empty() {
        return Ok(None);
    }
    let output = match kept {
        Some(file) => ChildOutput::File(file.try_clone().context("cannot share a file with the command")?),
        None => ChildOutput::Inherit,
    };
    let user = RunAs::sudo_caller()?;
    let (library, note) = match itt::environment(cli.collects_itt(), user.as_ref()) {
        Ok(library) => (library, None),
        Err(unreadable) => (None, Some(unreadable.to_string())),
    };
    let mut launch = Launch::new(&cli.command).output(output).run_as(user);
    if let Some(library) = library {
        log::info!("{}={} is set for the command", itt::VARIABLE, library.display());
        launch = launch.env(itt::VARIABLE, library);
        if let Some(level) = cli.engines.itt_level() {
            launch = launch.env(itt::LEVEL, level);
        }
    }
    Ok(Some((launch.spawn()?, note)))
}

/// Time in which a command may load what is to be probed before the user is told that nothing was found.
const LOADING: Duration = Duration::from_secs(5);

struct Run {
    session: Session,
    output: Output,
    command: Option<Running>,
    started: Instant,
    rates: Rates,
    recording: Option<Recording>,
    scrapes: Option<Scrapes>,
    otlp: Option<OtlpMetrics>,
    target: String,
    /// Why nothing new will come.
    ended: Option<String>,
    /// Whether nothing to probe was found when the run began, and the user does not know yet.
    finds_nothing: bool,
}

impl Run {
    /// Drains, updates and waits until the target ends, the time is over, or somebody says so.
    async fn go(
        &mut self,
        cli: &Live,
        processes: &[Process],
        mut end: EndSignals,
        mut write: WriteSignal,
    ) -> Result<()> {
        let mut ticks = interval(cli.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut drains = interval(DRAIN_INTERVAL);
        drains.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut alarms = watch(self.session.alarms()?);
        let targets = self.targets(processes);
        let ended = targets.ended();
        tokio::pin!(ended);
        let remaining = self.session.remaining();
        let time_is_over = async {
            match remaining {
                Some(remaining) => tokio::time::sleep(remaining).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_is_over);
        // The first tick comes at once.
        ticks.tick().await;
        if self.update()?.is_break() {
            return Ok(());
        }
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.session.refresh();
                    self.drain()?;
                    if self.started.elapsed() >= LOADING {
                        self.tell_if_nothing_is_found();
                    }
                    if self.update()?.is_break() {
                        return Ok(());
                    }
                }
                _ = drains.tick() => self.drain()?,
                Some(()) = alarms.recv() => self.drain()?,
                () = &mut ended, if self.ended.is_none() => {
                    self.on_target_end()?;
                    if !matches!(self.output, Output::Screen(_)) {
                        return Ok(());
                    }
                }
                asked = self.output.until_asked() => match asked? {
                    Asked::Leave => return Ok(()),
                    Asked::Write => self.record(Due::Write(Cause::Key))?,
                },
                scrape = Scrapes::next(&mut self.scrapes) => {
                    self.drain()?;
                    let findings = self.session.findings()?;
                    scrape.answer(Metrics::of(&findings, &Snapshot::of(&findings)));
                }
                () = write.recv() => {
                    self.drain()?;
                    self.record(Due::Write(Cause::Signal))?;
                }
                () = end.recv() => return Ok(()),
                () = &mut time_is_over => return Ok(()),
            }
        }
    }

    /// Drains, and does what the recording asks for.
    fn drain(&mut self) -> Result<()> {
        self.session.drain();
        let due = self.recording.as_ref().and_then(Recording::due);
        due.map_or(Ok(()), |due| self.record(due))
    }

    /// Has the recording do something with the findings so far.
    fn record(&mut self, due: Due) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.act(due, &self.session.findings()?);
        }
        Ok(())
    }

    /// Handles on what the run ends with: the command, or else all the processes.
    fn targets(&self, processes: &[Process]) -> Targets {
        let pids: Vec<u32> = match &self.command {
            Some(command) => vec![command.pid()],
            None => processes.iter().map(|process| process.pid).collect(),
        };
        Targets {
            any: !pids.is_empty(),
            // One that has ended already is not waited for.
            living: pids.into_iter().filter_map(|pid| PidFd::open(pid).ok()).collect(),
        }
    }

    /// The target is gone: nothing new will come. On a terminal people may still want to look.
    fn on_target_end(&mut self) -> Result<()> {
        let status = self.command.as_mut().and_then(|command| {
            // It has ended, so this does not wait.
            let _ = command.wait();
            command.exit_code()
        });
        self.ended = Some(match status {
            Some(status) => format!("command exited with status {status}; q quits"),
            None => "target ended; q quits".into(),
        });
        self.note_survivors();
        self.session.finish()?;
        // Elsewhere the last results are written at once anyway.
        if matches!(self.output, Output::Screen(_)) { self.update().map(drop) } else { Ok(()) }
    }

    /// Notes that processes which the command started may live on when it has ended.
    fn note_survivors(&mut self) {
        if self.command.is_some() {
            self.session.note_survivors();
        }
    }

    /// Tells once that nothing to probe has been found, and where it was searched.
    fn tell_if_nothing_is_found(&mut self) {
        if !std::mem::take(&mut self.finds_nothing) {
            return;
        }
        if let Some(text) = self.session.no_marks(&self.target) {
            self.session.note(
                "neither a function that writes marks nor a known engine was found in the target so far: until one is, \
                 there are power states only"
                    .into(),
            );
            // On the screen the note is enough.
            if !matches!(self.output, Output::Screen(_)) {
                stderr::messages(text.lines());
            }
        }
    }

    /// Shows what there is; breaks off when nobody reads it any more.
    fn update(&mut self) -> Result<ControlFlow<()>> {
        let findings = self.session.findings()?;
        if let Some(recording) = &mut self.recording {
            recording.checkpoint(&findings);
        }
        let mut snapshot = Snapshot::of(&findings);
        if let Some(otlp) = &mut self.otlp {
            otlp.offer(&findings, &snapshot);
        }
        if matches!(self.output, Output::Screen(_)) {
            snapshot.notes.extend(probe_share::warning(&snapshot));
            snapshot.notes.extend(logging::kept());
        }
        let health = self.health(&snapshot);
        self.output.update(&snapshot, health)
    }

    fn health(&mut self, snapshot: &Snapshot) -> Health {
        let elapsed = if self.ended.is_some() {
            Duration::from_nanos(snapshot.window.length_ns())
        } else {
            self.started.elapsed()
        };
        self.rates.update(elapsed, snapshot);
        Health {
            target: self.target.clone(),
            elapsed,
            marks_per_second: self.rates.marks,
            power_events_per_second: self.rates.power_events,
            records_lost: snapshot.loss.records_dropped,
            tables: snapshot.overhead.tables.clone(),
            ns_per_mark: snapshot.overhead.ns_per_mark,
            ns_per_power_event: snapshot.overhead.ns_per_power_event,
            collector_cpu_percent: self.rates.collector_cpu * 100.0,
            probes: self.session.probe_count(),
            probe_share: probe_share::excessive(snapshot),
            ended: self.ended.clone(),
            recorded: self.recording.as_ref().and_then(Recording::progress),
        }
    }

    /// Ends the command if it still runs; returns the status to exit with.
    fn end_command(&mut self) -> ExitCode {
        let Some(command) = &mut self.command else { return ExitCode::SUCCESS };
        if !matches!(command.try_wait(), Ok(Some(_))) {
            // It has ended meanwhile, or it gets the signal.
            let _ = command.signal(Signal::SIGTERM);
            // What is stopped gets no signal but this one: we may have stopped it just now.
            let _ = command.signal(Signal::SIGCONT);
            let asked = Instant::now();
            while matches!(command.try_wait(), Ok(None)) {
                if asked.elapsed() > PATIENCE {
                    stderr::message(format_args!(
                        "the command (process {}) ignores SIGTERM; it runs on",
                        command.pid()
                    ));
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            // We wanted it to end, and that is what was asked for.
            return ExitCode::SUCCESS;
        }
        command.exit_code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

/// Sends whenever one of the descriptors becomes readable.
fn watch(descriptors: Vec<OwnedFd>) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    for descriptor in descriptors {
        let sender = sender.clone();
        tokio::spawn(async move {
            // SAFETY: the descriptor is owned by what watches it, and closed only with it.
            let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
            let Ok(watched) = watched else { return };
            while let Ok(mut ready) = watched.readable().await {
                ready.clear_ready();
                if matches!(sender.try_send(()), Err(mpsc::error::TrySendError::Closed(()))) {
                    return;
                }
            }
        });
    }
    receiver
}
