//! `nntrace-bpf replay`: trace files, or a recording, to results.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use nntrace_user::{
    emit::Speed,
    model::{Findings, Marks, causality::Questions, timeline::Timelines},
    record::{self, Recorded},
    replay::{self, Replayed},
    report::snapshot::Snapshot,
    tui::Health,
};

use super::{emit, playback};
use crate::{
    arguments::{Replay, Results},
    output::{Output, files::Files, screen::Screen, thresholds},
    signals::EndSignals,
};

/// Replays the files; returns the exit status.
pub fn run(cli: &Replay) -> Result<ExitCode> {
    if cli.emit.is_wanted {
        return emit::run(cli);
    }
    let mut output = Output::open(&cli.results, &cli.host)?;
    let files = Files::open(&cli.results)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wants_screen = Output::wants_screen(&cli.results);
    if let Some(speed) = cli.speed {
        runtime.block_on(play(cli, speed, wants_screen, &mut output))?;
    }
    let run = Run::replay(cli)?;
    let (snapshot, timelines) = (Snapshot::of(&run.findings()), run.timelines());
    if wants_screen && cli.speed.is_none() {
        runtime.block_on(look(&snapshot))?;
    }
    // What is shown may fail (on a full disk, or a terminal that is gone): the files do not depend on it.
    files.write(&snapshot, timelines.as_ref(), run.marks())?;
    match output {
        // One look at the end, without a word about an interval.
        Output::Tables if !std::io::stdout().is_terminal() => Output::summary().finish(&snapshot, None)?,
        Output::Tables => {}
        output => output.finish(&snapshot, timelines.as_ref())?,
    }
    let tripped = thresholds::tripped(&snapshot, &cli.results.causes);
    Ok(if tripped { ExitCode::from(thresholds::TRIPPED) } else { ExitCode::SUCCESS })
}

/// Shows a recording as the run was.
async fn play(cli: &Replay, speed: Speed, wants_screen: bool, output: &mut Output) -> Result<()> {
    let [folder] = &cli.files[..] else { bail!("--speed shows one recording: name its folder alone") };
    if !record::is_recording(folder) {
        bail!("--speed is for recordings, and {} is none", folder.display());
    }
    // At any speed, the states come as fast as they can be read.
    let Speed::Times(times) = speed else { return Ok(()) };
    let options = recording_options(&cli.results, cli);
    if wants_screen {
        let mut screen = Output::Screen(Box::new(Screen::enter()?));
        return playback::show(folder, options, times, &mut screen).await;
    }
    playback::show(folder, options, times, output).await
}

/// Run from files.
enum Run {
    Traces(Box<Replayed>),
    Recording(Box<Recorded>),
}

impl Run {
    fn replay(cli: &Replay) -> Result<Self> {
        let Some(folder) = cli.files.iter().find(|file| record::is_recording(file)) else {
            return Ok(Self::Traces(Box::new(replay::replay(&replay::Options {
                files: cli.files.clone(),
                range: cli.time_range,
                topology: cli.host.topology.clone(),
                clusters: cli.host.clusters.clone(),
                energy_model: cli.host.energy_model.clone(),
                drivers: cli.drivers.iter().copied().collect(),
                questions: cli.results.questions(),
                limits: cli.results.limits(),
                with_details: cli.results.detail,
                with_steps: cli.results.wants_steps(),
            })?)));
        };
        if let Some(reason) = refusal(cli) {
            bail!("cannot replay the recording {} {reason}", folder.display());
        }
        Ok(Self::Recording(Box::new(record::replay(folder, &recording_options(&cli.results, cli))?)))
    }

    fn findings(&self) -> Findings<'_> {
        match self {
            Self::Traces(run) => run.findings(),
            Self::Recording(run) => run.findings(),
        }
    }

    fn timelines(&self) -> Option<Timelines> {
        match self {
            Self::Traces(run) => run.timelines().cloned(),
            Self::Recording(run) => run.timelines(),
        }
    }

    fn marks(&self) -> &Marks {
        match self {
            Self::Traces(run) => run.marks(),
            Self::Recording(run) => run.marks(),
        }
    }
}

fn recording_options(results: &Results, cli: &Replay) -> record::ReplayOptions {
    let questions = results.questions();
    record::ReplayOptions {
        // Without a question of its own, a replay answers those of the recording.
        questions: (questions != Questions::default()).then_some(questions),
        limits: results.memory.is_some().then(|| results.limits()),
        energy_model: cli.host.energy_model.clone(),
        with_details: results.detail,
        with_timelines: results.wants_steps(),
    }
}

/// Returns the reason why a recording cannot be replayed with these arguments: it knows its host and its drivers, and its
/// totals are those of the whole run.
fn refusal(cli: &Replay) -> Option<&'static str> {
    if cli.files.len() > 1 {
        Some("together with other files: name it alone")
    } else if cli.time_range.is_some() {
        Some("in part: --time-range is for traces")
    } else if cli.host.topology.is_some() || !cli.host.clusters.is_empty() {
        Some("on another host: --topology and --cluster are for traces, as a recording has its own")
    } else if !cli.drivers.is_empty() {
        Some("with other drivers: --driver is for traces; give it to `record`")
    } else {
        None
    }
}

/// Shows the results on the terminal until the user has seen enough.
async fn look(snapshot: &Snapshot) -> Result<()> {
    let mut end = EndSignals::catch()?;
    let mut screen = Screen::enter()?;
    screen.update(snapshot.clone(), health(snapshot, Some("replay; q quits")))?;
    tokio::select! {
        left = screen.until_left() => left,
        () = end.recv() => Ok(()),
    }
}

/// Returns the health of a replay that has ended with this text, or goes on.
pub fn health(snapshot: &Snapshot, ended: Option<&str>) -> Health {
    let elapsed = Duration::from_nanos(snapshot.window.length_ns());
    let rate = |events: u64| if elapsed.is_zero() { 0.0 } else { events as f64 / elapsed.as_secs_f64() };
    Health {
        target: snapshot.source.files.join(", "),
        elapsed,
        marks_per_second: rate(snapshot.overhead.marks),
        power_events_per_second: rate(snapshot.overhead.power_events),
        records_lost: snapshot.loss.records_dropped,
        ended: ended.map(str::to_owned),
        ..Health::default()
    }
}
