//! One run of the command: targets, session, loop, end.

mod html_report;
mod kept_output;
mod otlp_metrics;
mod rates;
mod run;
mod targets;

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use html_report::HtmlReport;
use kept_output::{scratch_file, show};
use log::LevelFilter;
use nntrace_user::{
    caller::{self, RunAs},
    export::swimlane::Counters,
    live::{
        examinations::examine_files_apart,
        hooks::Hooks,
        host_readers::HostReaders,
        itt,
        kernel::KernelOptions,
        probes::Placement,
        session::{Session, SessionOptions},
        stop_guard::StopGuard,
        target::{ChildOutput, Held, Launch, Process, Processes, Running},
    },
    model::{Findings, Topology, timeline::Timelines, unfinished_sections::OpenSections},
    record::ClockReading,
    report::snapshot::Snapshot,
    tui::App,
};
use otlp_metrics::OtlpMetrics;
use rates::Rates;
use run::Run;

use super::record::Recording;
use crate::{
    arguments::{Level, Live, OutputKind},
    logging,
    metrics_server::MetricsListener,
    output::{
        Output,
        files::{Files, Found},
        perfetto_trace::PerfettoTrace,
        screen::Screen,
        thresholds,
    },
    signals::{self, EndSignals, WriteSignal},
    stderr,
};

/// Traces live, and records the run where that is asked for; returns the exit status.
pub fn run(cli: &Live, log_level: LevelFilter, mut recording: Option<Recording>) -> Result<ExitCode> {
    check(cli)?;
    // First, while there is one thread.
    let mut guard =
        (!cli.command.is_empty()).then(StopGuard::start).transpose().context("cannot start a process")?;
    logging::start(log_level);
    let _examiners = examine_files_apart()?;
    let processes = targets(cli)?;
    let (topology, readers) = (cli.host.live_topology()?, cli.host_readers()?);
    let wants_screen = !cli.json_lines && Output::wants_screen(&cli.results) && io::stdin().is_terminal();
    note_no_process(wants_screen);
    let mut output = output(cli)?;
    let files = Files::open(&cli.results)?;
    let listener = cli.metrics.listen.map(MetricsListener::bind).transpose()?;
    let otlp = OtlpMetrics::start(cli, &processes)?;

    // While the terminal is ours, what the command prints would spoil it: it is kept, and shown at the end.
    let kept = if wants_screen && !cli.command.is_empty() { Some(scratch_file()?) } else { None };
    // Held from the start: if it cannot be started, nothing else need be.
    let Launched { mut held, unseen, hooks } = launch(cli, kept.as_ref())?;

    let file_observer = recording.as_mut().and_then(Recording::take_file_observer);
    let options = session_options(cli, recording.as_ref(), topology, readers, hooks, file_observer.is_some());
    let mut session = start(options, recording.as_ref(), unseen)?;
    let report = HtmlReport::begin(cli, &mut session);
    let trace = perfetto_trace(cli, &mut session)?;
    if let Some(observer) = file_observer {
        session.follow_files(observer);
    }
    for process in &processes {
        session.trace(process)?;
    }
    if let Some(held) = &mut held {
        session.trace_held(held, guard.take().context("a command has a guard")?)?;
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
        output = Output::Screen(Box::new(Screen::enter(interface(cli))?));
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
        interval: cli.interval(),
        rates: Rates::default(),
        recording,
        scrapes,
        otlp,
        target: cli.target(),
        open: OpenSections::default(),
        ended: None,
        finds_nothing,
        says_nothing_is_found: false,
    };
    // A command has not loaded its libraries yet; in a process that runs, nothing may follow.
    if run.command.is_none() {
        run.tell_if_nothing_is_found();
    }
    let looped = runtime.block_on(run.go(&processes, end, write));
    run.session.hold_no_more();
    let finished = run.session.finish();
    // The target was not ours to end, unless we started it.
    let code = run.end_command();
    finished?;
    run.tell_if_nothing_is_found();
    if run.ended.is_none() {
        run.note_survivors();
    }
    run.take_back_if_found();
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
    recorded?.filter(|_| !cli.results.is_quiet).iter().flatten().for_each(stderr::message);
    // A figure that is wrong, or over its limit, matters more than how the command ended.
    let differs = snapshot.verify.as_ref().is_some_and(|verify| !verify.passes);
    let tripped = thresholds::tripped(&snapshot, &cli.results.causes);
    Ok(if differs || tripped { ExitCode::from(thresholds::TRIPPED) } else { code })
}

/// Checks that the options fit together, and the rights of who asks.
fn check(cli: &Live) -> Result<()> {
    cli.check()?;
    ensure!(
        !cli.fast_probes || !caller::is_program_privileged(),
        "--fast-probes can crash other users' processes that run the probed code, so it is refused when the program has file \
         capabilities (setcap); use sudo"
    );
    Ok(())
}

/// Returns the terminal interface: with operators in front, where they are asked for.
fn interface(cli: &Live) -> App {
    if cli.engines.asks_for_operators() { App::new().with_functions_first() } else { App::new() }
}

/// Opens the output, unless that is the screen. Tables are printed once, at the end, unless updates are asked for.
fn output(cli: &Live) -> Result<Output> {
    if cli.json_lines {
        return Ok(Output::JsonLines);
    }
    match Output::open(&cli.results, &cli.host)? {
        Output::Tables if cli.interval.is_none() => Ok(Output::summary()),
        output => Ok(output),
    }
}

/// Notes on stderr what a command line without any word does, where no screen shows it.
fn note_no_process(wants_screen: bool) {
    if !wants_screen && std::env::args_os().len() == 1 {
        stderr::message(
            "no process is named: these are the states of the CPUs alone, until Ctrl-C; trace processes with --pid PID, --comm NAME \
             or -- COMMAND",
        );
    }
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
    readers: HostReaders,
    hooks: Result<Hooks, String>,
    reports_files: bool,
) -> SessionOptions {
    SessionOptions {
        marks: cli.mark_source(),
        symbols: cli.symbols(),
        express: cli.express_lane(),
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
        readers,
        questions: recording
            .map_or_else(|| cli.results.questions(), |recording| recording.questions().clone()),
        limits: cli.results.limits(),
        engines: cli.engines(hooks),
        kernel: KernelOptions {
            ring_bytes: cli.ring_size.saturating_mul(1024),
            map_memory: cli.map_memory,
            reports_files,
            is_recorded: recording.is_some(),
            ..KernelOptions::default()
        },
    }
}

/// The processes that `--pid` and `--comm` mean.
fn targets(cli: &Live) -> Result<Vec<Process>> {
    Ok(Processes::default().select(&cli.pids, &cli.comms)?)
}

/// Starts the session, which a recording observes, with a note on what will not be seen.
fn start(options: SessionOptions, recording: Option<&Recording>, unseen: Option<String>) -> Result<Session> {
    let mut session = Session::start(options)?;
    if let Some(observer) = recording.and_then(Recording::observer) {
        session.observe_by(observer);
    }
    if let Some(note) = unseen {
        session.note(note);
    }
    Ok(session)
}

/// Command that was started, if there is one.
struct Launched {
    held: Option<Held>,
    /// Note on what will not be seen of it.
    unseen: Option<String>,
    /// Hooks, or the reason why there are none.
    hooks: Result<Hooks, String>,
}

/// Starts the command, if there is one.
fn launch(cli: &Live, kept: Option<&File>) -> Result<Launched> {
    if cli.command.is_empty() {
        return Ok(Launched { held: None, unseen: None, hooks: cli.hooks(None)? });
    }
    let output = match kept {
        Some(file) => ChildOutput::File(file.try_clone().context("cannot share a file with the command")?),
        None => ChildOutput::Inherit,
    };
    let user = RunAs::sudo_caller()?;
    let hooks = cli.hooks(user.as_ref())?;
    let (library, unseen) = match itt::environment(cli.collects_itt(), user.as_ref()) {
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
    if let Ok(hooks) = &hooks {
        let (name, value) = hooks.variable();
        launch = launch.env(name, value);
    }
    Ok(Launched { held: Some(launch.spawn()?), unseen, hooks })
}
