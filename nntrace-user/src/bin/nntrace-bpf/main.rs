//! `nntrace-bpf`: the command.

// What people read goes through `output`, which lets no character act on their terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod commands;
mod logging;
mod metrics_server;
mod otlp;
mod output;
mod signals;
mod stderr;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use nntrace_user::report::terminal_text::Text;

use crate::{
    arguments::{Action, Cli},
    commands::{
        calls, diff, energy_model, engines, export, info, live, manual, pack, print, record, replay, report,
        topology, unpack, what_if, why,
    },
};

/// Exit status when the command line is wrong.
const USAGE: u8 = 2;

/// Ending of the names of packs.
const PACK: &str = "nnpack";

fn main() -> ExitCode {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    if let Some(Action::Replay(replay)) = &mut cli.action {
        replay.settle_json(std::env::args_os());
    }
    let (results, records) = match &cli.action {
        Some(Action::Replay(replay)) => (&replay.results, false),
        Some(Action::Record(record)) => (&record.live.results, true),
        _ => (&cli.live.results, false),
    };
    if let Err(error) = results.check(records) {
        return refused(&error);
    }
    let mut inputs = cli.action.iter().flat_map(Action::inputs);
    if let Some(pack) = inputs.find(|file| file.extension().is_some_and(|ending| ending == PACK)) {
        let pack = pack.display();
        stderr::message(format_args!("{pack} is a pack: unpack it first, with: nntrace-bpf unpack {pack}"));
        return ExitCode::FAILURE;
    }
    let done = match &cli.action {
        Some(Action::Replay(arguments)) => replay::run(arguments),
        Some(Action::Print(arguments)) => print::run(arguments),
        Some(Action::Pack(arguments)) => pack::run(arguments),
        Some(Action::Unpack(arguments)) => unpack::run(arguments),
        Some(Action::Export(arguments)) => export::run(arguments),
        Some(Action::Calls(arguments)) => calls::run(arguments),
        Some(Action::Report(arguments)) => report::run(arguments),
        Some(Action::Diff(arguments)) => diff::run(arguments),
        Some(Action::WhatIf(arguments)) => what_if::run(arguments),
        Some(Action::Why(arguments)) => why::run(arguments),
        Some(Action::Info(arguments)) => info::run(arguments),
        Some(Action::Engines(arguments)) => engines::run(arguments),
        Some(Action::Topology(arguments)) => topology::run(arguments),
        Some(Action::EnergyModel(action)) => energy_model::run(action),
        Some(Action::Completions { shell }) => manual::completions(*shell),
        Some(Action::Man) => manual::page(),
        Some(Action::Schema) => manual::schema(),
        Some(Action::Record(arguments)) => match arguments.live.log_level() {
            Ok(level) => record::run(arguments, level),
            Err(error) => return refused(&error),
        },
        None => match cli.live.log_level() {
            Ok(level) => live::run(&cli.live, level, None),
            Err(error) => return refused(&error),
        },
    };
    match done {
        Ok(code) => code,
        Err(error) => match error.downcast::<clap::Error>() {
            Ok(usage) => refused(&usage),
            Err(error) => {
                stderr::message(format_args!("{error:#}"));
                ExitCode::FAILURE
            }
        },
    }
}

/// Shows the help that was asked for, or what is wrong with the command line.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    // Arguments, and what files hold that they name, are in the text: it is shown without colours, line by line.
    let mut text = Text::new();
    for line in error.render().to_string().lines() {
        text.line(format_args!("{line}"));
    }
    // Nobody is left to be told when this fails.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(USAGE)
}
