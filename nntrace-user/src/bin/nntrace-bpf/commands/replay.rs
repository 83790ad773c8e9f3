//! `nntrace-bpf replay`: trace files, or a recording, to results.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::Result;
use nntrace_user::{report::snapshot::Snapshot, tui::Health};

use super::file_run::{Request, Run};
use crate::{
    arguments::Replay,
    output::{Output, files::Files, screen::Screen, thresholds},
    signals::EndSignals,
};

/// Replays the files; returns the exit status.
pub fn run(cli: &Replay) -> Result<ExitCode> {
    let output = Output::open(&cli.results, &cli.host)?;
    let files = Files::open(&cli.results)?;
    let run = Run::of(&Request {
        files: &cli.files,
        range: cli.time_range,
        drivers: &cli.drivers,
        host: &cli.host,
        questions: cli.results.questions(),
        memory: cli.results.memory,
        with_details: cli.results.detail,
        with_timelines: cli.results.wants_steps(),
    })?;
    let (snapshot, timelines) = (Snapshot::of(&run.findings()), run.timelines());
    if Output::wants_screen(&cli.results) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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
