//! `nntrace-bpf replay`: trace files, or a recording, to results.

mod otlp_spans;

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::Result;
use nntrace_user::{
    emit::Speed,
    export::perfetto,
    report::snapshot::Snapshot,
    tui::{App, Health},
};

use super::{
    emit, export,
    file_run::{Request, Run, SwimlaneParts},
    graph_question::Asked,
    playback, why_line,
};
use crate::{
    arguments::{OutputKind, Replay, usage},
    output::{
        self, Output,
        files::{Files, Found, ReportFacts},
        screen::Screen,
        thresholds,
    },
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
    let request = Request {
        files: &cli.files,
        range: cli.time_range,
        drivers: &cli.drivers,
        host: &cli.host,
        questions: cli.results.questions(),
        memory: cli.results.memory,
        with_details: cli.results.detail,
        with_timelines: cli.results.wants_steps(),
    };
    let recording = request.recording()?;
    if cli.results.otlp.is_some() && recording.is_none() {
        let message = "--otlp is for recordings, whose times of day are known; those of a trace are not: record the run \
                       with `nntrace-bpf record -o DIR`";
        return Err(usage(message.into()));
    }
    if let Some(speed) = cli.speed {
        runtime.block_on(play(&request, speed, wants_screen, &mut output))?;
    }
    let (run, swimlane) = if cli.results.wants(OutputKind::Html) {
        Run::with_sections(&request, cli.results.swimlane())?
    } else {
        (Run::of(&request)?, SwimlaneParts::default())
    };
    let findings = run.findings();
    let timelines = run.timelines();
    let mut snapshot = Snapshot::of(&findings);
    if cli.results.causes.overhead {
        snapshot = snapshot.with_dispatch_overhead(&findings, timelines.as_ref());
    }
    if wants_screen && cli.speed.is_none() {
        let shown = snapshot.clone().with_function_details(&findings).with_recent_activity(&findings);
        runtime.block_on(look(shown))?;
    }
    // What is shown may fail (on a full disk, or a terminal that is gone): the files do not depend on it.
    files.write(&Found {
        findings: &findings,
        snapshot: &snapshot,
        timelines: timelines.as_ref(),
        began_ns: run.real_time(snapshot.window.begin_ns),
        report: ReportFacts {
            title: &run.title(&cli.files),
            host_name: run.host_name(),
            sections: &swimlane.sections,
            threads: &swimlane.threads,
        },
        perfetto: &|out| {
            let shown = export::swimlane::Shown {
                least_ns: cli.results.min_span.unwrap_or(0),
                with_overhead: cli.results.causes.overhead,
            };
            export::swimlane::write::<perfetto::Format>(&request, shown, out)
        },
    })?;
    let output = match output {
        // One look at the end, without a word about an interval.
        Output::Tables if !std::io::stdout().is_terminal() => Some(Output::summary()),
        Output::Tables => None,
        output => Some(output),
    };
    if let Some(output) = output {
        let has_line = output.is_summary() && snapshot.usage.is_some();
        output.finish(&snapshot, timelines.as_ref())?;
        if has_line {
            let (files, range, host) = (&*cli.files, cli.time_range, &cli.host);
            let asked = Asked { files, range, host, memory: cli.results.memory };
            output::print(&why_line::line(&asked, run.events()))?;
        }
    }
    let sent = match (&cli.results.otlp, recording, &run) {
        (Some(endpoint), Some(folder), Run::Recording(recorded)) => {
            otlp_spans::send(endpoint, folder, recorded, &snapshot)?
        }
        _ => true,
    };
    let tripped = thresholds::tripped(&snapshot, &cli.results.causes);
    Ok(match (tripped, sent) {
        (true, _) => ExitCode::from(thresholds::TRIPPED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// Shows a recording as the run was.
async fn play(request: &Request<'_>, speed: Speed, wants_screen: bool, output: &mut Output) -> Result<()> {
    let Some(folder) = request.recording()? else {
        let message =
            "--speed is for recordings, and none of the files is one: name the folder that `record -o` wrote";
        return Err(usage(message.into()));
    };
    // At any speed, only the end is shown.
    let Speed::Times(times) = speed else { return Ok(()) };
    if wants_screen {
        let mut screen = Output::Screen(Box::new(Screen::enter(App::new())?));
        return playback::show(folder, request.of_recording(), times, &mut screen).await;
    }
    playback::show(folder, request.of_recording(), times, output).await
}

/// Shows the results on the terminal until the user has seen enough.
async fn look(snapshot: Snapshot) -> Result<()> {
    let mut end = EndSignals::catch()?;
    let mut screen = Screen::enter(App::new())?;
    let shown = health(&snapshot, Some("replay; q quits"));
    screen.update(snapshot, shown)?;
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
