//! Loop of a run: drains, updates and waits until the end.

use std::{
    ops::ControlFlow,
    os::fd::OwnedFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use nix::sys::signal::Signal;
use nntrace_user::{
    export::metrics::Metrics,
    live::{
        session::Session,
        target::{PidFd, Process, Running},
    },
    model::unfinished_sections::OpenSections,
    record::Cause,
    report::{probe_share, snapshot::Snapshot},
    tui::Health,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{
    super::record::{Due, Recording},
    otlp_metrics::OtlpMetrics,
    rates::Rates,
    targets::Targets,
};
use crate::{
    freed_memory, logging,
    metrics_server::Scrapes,
    output::{Output, screen::Asked},
    signals::{EndSignals, LeaseSignal, WriteSignal},
    stderr,
};

/// How often the rings are drained when none of them asks for it.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time in which a command may load what is to be probed before the user is told that nothing was found.
const LOADING: Duration = Duration::from_secs(5);

/// Run with what it reads and what it writes.
pub(super) struct Run {
    pub(super) session: Session,
    pub(super) output: Output,
    pub(super) command: Option<Running>,
    pub(super) started: Instant,
    /// Time from one update to the next.
    pub(super) interval: Duration,
    pub(super) rates: Rates,
    pub(super) recording: Option<Recording>,
    pub(super) scrapes: Option<Scrapes>,
    pub(super) otlp: Option<OtlpMetrics>,
    pub(super) target: String,
    /// Sections that are open, for the live view.
    pub(super) open: OpenSections,
    /// Why nothing new will come.
    pub(super) ended: Option<String>,
    /// Whether nothing to probe was found when the run began, and the user does not know yet.
    pub(super) finds_nothing: bool,
    /// Whether a note says so.
    pub(super) says_nothing_is_found: bool,
}

/// Note on a target in which there is nothing to probe.
const NOTHING_FOUND: &str = "neither a function that writes marks nor a known engine was found in the target so far: until one \
                             is, there are power states only";

impl Run {
    /// Drains, updates and waits until the target ends, the time is over, or somebody says so.
    pub(super) async fn go(
        &mut self,
        processes: &[Process],
        mut end: EndSignals,
        mut write: WriteSignal,
    ) -> Result<()> {
        let mut ticks = ticks_of(self.interval);
        let mut drains = ticks_of(DRAIN_INTERVAL);
        let mut alarms = watch(self.session.alarms()?);
        let mut writers = LeaseSignal::catch()?;
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
        // What was read to load the kernel programs is not needed any more, and in a while that of the first files neither.
        freed_memory::give_back();
        let mut is_loading = true;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.session.refresh();
                    self.drain()?;
                    if is_loading && self.started.elapsed() >= LOADING {
                        is_loading = false;
                        self.tell_if_nothing_is_found();
                        freed_memory::give_back();
                    }
                    if self.update()?.is_break() {
                        return Ok(());
                    }
                }
                _ = drains.tick() => self.drain()?,
                Some(()) = alarms.recv() => self.drain()?,
                () = writers.recv() => self.drain()?,
                () = &mut ended, if self.ended.is_none() => {
                    self.on_target_end()?;
                    if !matches!(self.output, Output::Screen(_)) {
                        return Ok(());
                    }
                }
                asked = self.output.until_asked() => match asked? {
                    Asked::Leave => return Ok(()),
                    Asked::Write => self.record(Due::Write(Cause::Key))?,
                    Asked::Interval(pace) => {
                        self.interval = pace.of(self.interval);
                        ticks = ticks_of(self.interval);
                    }
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
    pub(super) fn note_survivors(&mut self) {
        if self.command.is_some() {
            self.session.note_survivors();
        }
    }

    /// Tells once that nothing to probe has been found, and where it was searched.
    pub(super) fn tell_if_nothing_is_found(&mut self) {
        if !std::mem::take(&mut self.finds_nothing) {
            return;
        }
        if let Some(text) = self.session.no_marks(&self.target) {
            self.session.note(NOTHING_FOUND.to_owned());
            self.says_nothing_is_found = true;
            // On the screen the note is enough.
            if !matches!(self.output, Output::Screen(_)) {
                stderr::messages(text.lines());
            }
        }
    }

    /// Takes back that nothing was found, once something is.
    pub(super) fn take_back_if_found(&mut self) {
        if self.says_nothing_is_found && self.session.no_marks(&self.target).is_none() {
            self.session.take_back(NOTHING_FOUND);
            self.says_nothing_is_found = false;
        }
    }

    /// Shows what there is; breaks off when nobody reads it any more.
    fn update(&mut self) -> Result<ControlFlow<()>> {
        self.take_back_if_found();
        let on_screen = matches!(self.output, Output::Screen(_));
        if on_screen && self.ended.is_none() {
            self.session.read_open_sections(&mut self.open)?;
        }
        let findings = self.session.findings()?;
        if let Some(recording) = &mut self.recording {
            recording.checkpoint(&findings);
        }
        if !self.output.shows_updates() && self.otlp.is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut snapshot = Snapshot::of(&findings);
        if let Some(otlp) = &mut self.otlp {
            otlp.offer(&findings, &snapshot);
        }
        if on_screen {
            snapshot = snapshot.with_function_details(&findings);
            if self.ended.is_none() {
                snapshot = snapshot.with_open_sections(&findings, &self.open);
            }
            snapshot = snapshot.with_recent_activity(&findings);
            snapshot.notes.extend(probe_share::warning(&snapshot));
            snapshot.notes.extend(logging::kept());
        }
        let health = self.health(&snapshot);
        self.output.update(snapshot, health)
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
            interval: Some(self.interval),
            collector_cpu_percent: self.rates.collector_cpu * 100.0,
            probes: self.session.probe_count(),
            probe_share: probe_share::excessive(snapshot),
            ended: self.ended.clone(),
            recorded: self.recording.as_ref().and_then(Recording::progress),
        }
    }

    /// Ends the command if it still runs; returns the status to exit with.
    pub(super) fn end_command(&mut self) -> ExitCode {
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

/// Returns ticks at an interval, the first of them at once.
fn ticks_of(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
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
