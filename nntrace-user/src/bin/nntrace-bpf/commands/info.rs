//! `nntrace-bpf info`: what is in a recording.

mod comparison;

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use nntrace_user::{
    model::{
        cpu_list,
        plurals::{counted, one_or_many},
    },
    record::{FileIdentity, StreamSummary, Summary},
    report::{
        number_format,
        terminal_text::{self, Text},
    },
};

use super::recording_folder;
use crate::{
    arguments::Info,
    output::{self, shell_words::shell_words, thresholds::TRIPPED},
};

/// Tells what is in a recording; returns the exit status.
pub fn run(cli: &Info) -> Result<ExitCode> {
    if cli.command {
        return print_command(&cli.folder);
    }
    let summary = read(&cli.folder, cli.check)?;
    let mut differs = false;
    if cli.compare {
        let differences = comparison::differences(&summary);
        output::print(&comparison::text(&differences))?;
        differs = !differences.is_empty();
    } else if cli.json {
        output::write_stdout(&terminal_text::to_json(&summary)?)?;
    } else {
        output::print(&text(&summary))?;
    }
    Ok(if cli.check && !summary.is_whole() {
        ExitCode::FAILURE
    } else if cli.strict && differs {
        ExitCode::from(TRIPPED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Prints the command that was recorded, as a shell takes it; returns the exit status.
pub fn print_command(folder: &Path) -> Result<ExitCode> {
    let summary = read(folder, false)?;
    if summary.run.command.is_empty() {
        bail!("{} has no command: the run was attached to processes that ran already", folder.display());
    }
    let mut text = Text::new();
    text.line(format_args!("{}", shell_words(&summary.run.command)));
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn read(folder: &Path, check: bool) -> Result<Summary> {
    recording_folder::check(folder, "`info`")?;
    Ok(Summary::read(folder, check)?)
}

/// Returns everything as text.
fn text(summary: &Summary) -> Text {
    let mut text = Text::new();
    let mut row = |word: &str, value: String| text.line(format_args!("{word:<13}{value}"));
    let run = &summary.run;
    row("recording", summary.recording.clone());
    row("tool", format!("nntrace-bpf {}", run.tool));
    row("arguments", shell_words(&run.arguments));
    row("command", if run.command.is_empty() { "none".into() } else { shell_words(&run.command) });
    row("folder", run.folder.clone());
    row("exit status", run.exit_status.map_or_else(|| "not known".into(), |status| status.to_string()));
    let began = UNIX_EPOCH + Duration::from_nanos(summary.began_ns);
    row("began", humantime::format_rfc3339_millis(began).to_string());
    let ended = if summary.is_ended { "" } else { ", not ended: this is its last state" };
    row("duration", format!("{}{ended}", number_format::duration_ns(summary.window.length_ns())));
    for note in &summary.part {
        row("part", note.clone());
    }
    let host = &summary.host;
    let cpus = counted(host.cpus.into(), "CPU");
    row("host", format!("Linux {} on {}, {cpus}", host.kernel, host.machine));
    for cluster in &summary.clusters {
        row("cluster", format!("{}: CPUs {}", cluster.name, cpu_list::format(&cluster.cpus)));
    }
    for policy in &summary.policies {
        row("policy", format!("CPUs {}", cpu_list::format(policy)));
    }
    for (name, value) in &run.environment {
        row("variable", format!("{name}={value}"));
    }
    row("level", if run.scheduling { "sched" } else { "marks" }.into());
    let marks = serde_json::to_value(summary.source.marks).ok();
    row("marks", marks.as_ref().and_then(|marks| marks.as_str()).unwrap_or_default().to_owned());
    for engine in &summary.source.engines {
        let version = engine.version.as_deref().unwrap_or("of unknown version");
        let functions = counted(engine.functions as u64, "function");
        row("engine", format!("{} {version}: {functions} in {}", engine.engine, engine.file));
    }
    for file in &summary.source.files {
        let identity = summary.probed.iter().find(|probed| probed.path == *file);
        row("probed", format!("{file}{}", identity.map(described).unwrap_or_default()));
    }
    row("questions", questions(summary));
    for (pid, comm) in &summary.processes {
        row("process", format!("{pid} {comm}"));
    }
    match &summary.rails {
        None => row("rails", "not measured".into()),
        Some(rails) if rails.is_empty() => row("rails", "none on this host".into()),
        Some(rails) => {
            rails
                .rails
                .iter()
                .for_each(|rail| row("rail", format!("{} ({})", rail.path(), rail.kind.name())));
            let unreadable = rails.unreadable.iter();
            unreadable.for_each(|rail| row("rail", format!("{}, unreadable: {}", rail.rail, rail.reason)));
        }
    }
    let loss = &summary.loss;
    row("lost", format!("{} of {} records", loss.records_dropped, loss.records_produced));
    streams(&mut text, summary);
    for damage in &summary.damage {
        text.line(format_args!("damaged: {damage}"));
    }
    let missing = summary.events.saturating_sub(summary.events_found);
    if missing > 0 {
        let (events, are) = (counted(summary.events, "event"), one_or_many(missing, "is", "are"));
        text.line(format_args!("{missing} of {events} {are} missing"));
    } else if summary.is_checked && summary.is_whole() {
        text.line(format_args!("checked: every block is whole"));
    }
    text
}

fn described(file: &FileIdentity) -> String {
    let id = file.build_id.as_deref().unwrap_or("none");
    format!(" ({} bytes, build id {id})", file.bytes)
}

/// Returns the questions about causes that were asked.
fn questions(summary: &Summary) -> String {
    let asked = &summary.run.questions;
    let mut words = Vec::new();
    let options =
        [("--iteration-root", &asked.iteration_root), ("--by", &asked.by), ("--explain", &asked.explain)];
    for (option, value) in options {
        words.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
    }
    for (option, is_asked) in [("--missing", asked.missing), ("--causes", asked.graph)] {
        words.extend(is_asked.then(|| option.to_owned()));
    }
    if words.is_empty() { "none".into() } else { shell_words(&words) }
}

/// Adds the table of the streams.
fn streams(text: &mut Text, summary: &Summary) {
    let files = counted(summary.files as u64, "file");
    let (bytes, events) = (counted(summary.bytes, "byte"), counted(summary.events, "event"));
    text.line(format_args!("{files}, {bytes}, {events}"));
    let width = summary.streams.iter().map(|stream| stream.name.chars().count()).max().unwrap_or_default();
    text.line(format_args!(
        "  {:<width$}{:>12}{:>8}{:>14}{:>14}{:>8}{:>11}",
        "stream", "events", "blocks", "bytes", "uncompressed", "ratio", "per event"
    ));
    let mut all = StreamSummary { name: "all".into(), ..StreamSummary::default() };
    for stream in &summary.streams {
        all.events += stream.events;
        all.blocks += stream.blocks;
        all.plain_bytes += stream.plain_bytes;
        all.stored_bytes += stream.stored_bytes;
        all.checkpoints += stream.checkpoints;
        all.checkpoint_bytes += stream.checkpoint_bytes;
        stream_line(text, stream, width);
    }
    stream_line(text, &all, width);
    let (states, bytes) = (counted(all.checkpoints, "state"), counted(all.checkpoint_bytes, "byte"));
    text.line(format_args!("{states} of the run, {bytes}"));
}

fn stream_line(text: &mut Text, stream: &StreamSummary, width: usize) {
    let StreamSummary { name, blocks, events, plain_bytes, stored_bytes, .. } = stream;
    let ratio = |part: u64, whole: u64| {
        if whole == 0 { "-".to_owned() } else { format!("{:.2}", part as f64 / whole as f64) }
    };
    text.line(format_args!(
        "  {name:<width$}{events:>12}{blocks:>8}{stored_bytes:>14}{plain_bytes:>14}{:>8}{:>11}",
        ratio(*plain_bytes, *stored_bytes),
        ratio(*stored_bytes, *events),
    ));
}
