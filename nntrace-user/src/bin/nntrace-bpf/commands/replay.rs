//! `nntrace-bpf replay`: trace files to results.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::Result;
use nntrace_user::{replay, report::snapshot::Snapshot, tui::Health};

use crate::{
    arguments::Replay,
    output::{Output, files::Files, screen::Screen, thresholds},
    signals::EndSignals,
};

/// Replays the files; returns the exit status.
pub fn run(cli: &Replay) -> Result<ExitCode> {
    let output = Output::open(&cli.results, &cli.host)?;
    let files = Files::open(&cli.results)?;
    let replayed = replay::replay(&replay::Options {
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
    })?;
    let snapshot = Snapshot::of(&replayed.findings());
    if Output::wants_screen(&cli.results) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(look(&snapshot))?;
    }
    // What is shown may fail (on a full disk, or a terminal that is gone): the files do not depend on it.
    files.write(&snapshot, replayed.timelines(), replayed.marks())?;
    match output {
        // One look at the end, without a word about an interval.
        Output::Tables if !std::io::stdout().is_terminal() => Output::summary().finish(&snapshot, None)?,
        Output::Tables => {}
        output => output.finish(&snapshot, replayed.timelines())?,
    }
    let tripped = thresholds::tripped(&snapshot, &cli.results.causes);
    Ok(if tripped { ExitCode::from(thresholds::TRIPPED) } else { ExitCode::SUCCESS })
}

/// Shows the results on the terminal until the user has seen enough.
async fn look(snapshot: &Snapshot) -> Result<()> {
    let mut end = EndSignals::catch()?;
    let mut screen = Screen::enter()?;
    screen.update(snapshot.clone(), health(snapshot))?;
    tokio::select! {
        left = screen.until_left() => left,
        () = end.recv() => Ok(()),
    }
}

fn health(snapshot: &Snapshot) -> Health {
    let elapsed = Duration::from_nanos(snapshot.window.length_ns());
    let rate = |events: u64| if elapsed.is_zero() { 0.0 } else { events as f64 / elapsed.as_secs_f64() };
    Health {
        target: snapshot.source.files.join(", "),
        elapsed,
        marks_per_second: rate(snapshot.overhead.marks),
        power_events_per_second: rate(snapshot.overhead.power_events),
        records_lost: snapshot.loss.records_dropped,
        ended: Some("replay; q quits".into()),
        ..Health::default()
    }
}
