//! `nntrace-bpf engines`: which engines files and processes contain, and what a run would probe.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    live::{
        engines::{EngineMaps, FoundEngine, PlannedProbe, Survey},
        examinations::examine_files_apart,
    },
    model::plurals::counted,
    report::terminal_text::{self, Text},
    small_file,
};

use super::propose;
use crate::{arguments::Engines, output, stderr};

/// Functions of one line of a map that are listed one by one.
const LISTED: usize = 4;
/// Columns of a mark, the prefix included.
const MARK: usize = 10;

/// Looks for engines; returns the exit status.
pub fn run(cli: &Engines) -> Result<ExitCode> {
    if cli.propose {
        return propose::run(&cli.targets, &cli.command);
    }
    let maps = maps(cli)?;
    if cli.targets.is_empty() {
        return known(cli, &maps);
    }
    let _examiners = examine_files_apart()?;
    let mut survey = Survey::default();
    for target in &cli.targets {
        match target.parse::<u32>() {
            // A file may have a number as its name.
            Ok(pid) if !Path::new(target).exists() => {
                survey.process(pid, &maps).map_err(anyhow::Error::msg)?;
            }
            _ => survey.file(Path::new(target), &maps),
        }
    }
    if cli.json {
        output::write_stdout(&terminal_text::to_json(&survey).context("cannot write JSON")?)?;
    } else {
        output::print(&shown(&survey, cli.all))?;
    }
    for file in &survey.failed {
        stderr::message(format_args!("{}: {}", file.file.display(), file.reason));
    }
    if survey.examined == 0 {
        bail!("nothing could be examined");
    }
    Ok(ExitCode::SUCCESS)
}

/// The maps that the command line asks for. What is wrong in one is said, and the rest of it used.
fn maps(cli: &Engines) -> Result<EngineMaps> {
    let mut maps = EngineMaps::default();
    for path in &cli.maps {
        let name = path.display().to_string();
        let text = small_file::read_text(path, small_file::DESCRIPTION)
            .with_context(|| format!("cannot read the map {name}"))?;
        for error in maps.add(&name, &text) {
            stderr::message(error);
        }
    }
    if !cli.names.is_empty() {
        maps.keep(&cli.names).map_err(anyhow::Error::msg)?;
    }
    Ok(maps)
}

/// Shows the known engines.
fn known(cli: &Engines, maps: &EngineMaps) -> Result<ExitCode> {
    let known = maps.known();
    if cli.json {
        output::write_stdout(&terminal_text::to_json(&known).context("cannot write JSON")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Text::new();
    let width = known.iter().map(|engine| engine.name.len()).max().unwrap_or_default();
    for engine in known {
        let tested = if engine.is_tested { "" } else { " (not tested on the real engine)" };
        text.line(format_args!("{:width$}  {}{tested}", engine.name, engine.parts.join("; ")));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The survey for people.
fn shown(survey: &Survey, all: bool) -> Text {
    let mut text = Text::new();
    for (number, engine) in survey.engines.iter().enumerate() {
        if number > 0 {
            text.line(format_args!(""));
        }
        self::engine(&mut text, engine, all);
    }
    if survey.engines.is_empty() && survey.examined > 0 {
        let files = if survey.examined == 1 { "the file" } else { "the files" };
        text.line(format_args!("no known engine in {files} ({} examined)", survey.examined));
    }
    text
}

fn engine(text: &mut Text, engine: &FoundEngine, all: bool) {
    let version = engine.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
    text.line(format_args!("{}{version} in {}", engine.engine, engine.file.display()));
    text.line(format_args!("  {}: {}", engine.sureness, engine.signs.join("; ")));
    text.line(format_args!("  parts: {}", engine.parts.join("; ")));
    if !engine.is_tested {
        text.line(format_args!("  not tested on the real engine: look whether the figures are plausible"));
    }
    for level in ["run", "op"] {
        let probes: Vec<&PlannedProbe> = engine.probes.iter().filter(|probe| probe.level == level).collect();
        let places: usize = probes.iter().map(|probe| 1 + probe.returns.len()).sum();
        let more = if level == "op" { "more " } else { "" };
        let functions = counted(probes.len() as u64, &format!("{more}function"));
        text.line(format_args!("  level {level}: {functions}, at {}", counted(places as u64, "place")));
        for same in probes.chunk_by(|a, b| a.map_line == b.map_line) {
            line(text, same, all);
        }
    }
    let costs = cost(engine);
    text.line(format_args!("  cost of an inference: {costs}"));
    for note in &engine.notes {
        text.line(format_args!("  note: {note}"));
    }
}

/// Shows the functions of one line of a map.
fn line(text: &mut Text, probes: &[&PlannedProbe], all: bool) {
    let Some(first) = probes.first() else { return };
    let single_stepped = probes.iter().filter(|probe| !probe.entry_is_emulated).count();
    let slow =
        if single_stepped == 0 { String::new() } else { format!(", {single_stepped} by single steps") };
    if all || probes.len() <= LISTED {
        for probe in probes {
            let end = if probe.end == "stack pointer" { ", closed by the stack pointer" } else { "" };
            let kind = if probe.kind == "section" { String::new() } else { format!(", {}", probe.kind) };
            text.line(format_args!("    {:MARK$} {}{kind}{end}", probe.mark, probe.function));
        }
    } else {
        text.line(format_args!(
            "    {:MARK$} {} functions{slow}, such as {}",
            first.mark,
            probes.len(),
            first.function
        ));
    }
}

/// Probes that an inference passes.
fn cost(engine: &FoundEngine) -> String {
    let executes = |probe: &&PlannedProbe| probe.mark.contains("_PE") || probe.mark.contains("_PCO");
    let count =
        |level: &str| engine.probes.iter().filter(|probe| probe.level == level).filter(executes).count();
    let run = match count("run") {
        0 => "nothing at level run".to_owned(),
        1 => "one pair of probes at level run".to_owned(),
        most => format!("up to {most} pairs of probes at level run, those that call each other"),
    };
    let op = if count("op") == 0 { "" } else { ", and one or more for each operator at level op" };
    format!("{run}{op}; a run measures how long a pair takes here")
}
