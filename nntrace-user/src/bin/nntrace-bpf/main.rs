//! `nntrace-bpf`: the command.

// What people read goes through `output`, which lets no character act on their terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod command_line;
mod commands;
mod freed_memory;
mod logging;
mod metrics_server;
mod otlp;
mod output;
mod signals;
mod stderr;

use std::{
    error::Error,
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, ensure};
use clap::CommandFactory as _;
use nix::{libc, unistd::Uid};
use nntrace_user::{caller, live::examinations::serve_if_asked, report::terminal_text::Text};

use crate::{
    arguments::{Action, Cli, FreshRun},
    commands::{
        bench, calls, diff, doctor, energy_model, engines, explain, export, info, live, manual, pack,
        placement, print, record, replay, report, topology, unpack, what_if, why,
    },
};

/// Exit status when the command line is wrong.
const USAGE: u8 = 2;

/// Ending of the names of packs.
const PACK: &str = "nnpack";

fn main() -> ExitCode {
    if let Some(served) = serve_if_asked() {
        // The process that asked was sent the reason.
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut cli = match command_line::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    if let Some(Action::Replay(replay)) = &mut cli.action {
        replay.settle_json(std::env::args_os());
    }
    let (results, records) = match &cli.action {
        Some(Action::Replay(replay)) => (&replay.results, false),
        Some(Action::Record(record)) => (&record.live.results, true),
        Some(Action::Bench(bench)) => (&bench.live.results, true),
        _ => (&cli.live.results, false),
    };
    if let Err(error) = results.check(records) {
        return refused(&with_usage(error, &words));
    }
    if let Err(error) = prepare(cli.action.as_ref()) {
        stderr::message(chain(&error));
        return ExitCode::FAILURE;
    }
    let mut inputs = cli.action.iter().flat_map(Action::inputs);
    for file in inputs.clone() {
        output::inputs::add(file);
    }
    if let Some(pack) = inputs.find(|file| file.extension().is_some_and(|ending| ending == PACK)) {
        let pack = pack.display();
        stderr::message(format_args!("{pack} is a pack: unpack it first, with: nntrace-bpf unpack {pack}"));
        return ExitCode::FAILURE;
    }
    let done = match &cli.action {
        Some(Action::Explain(arguments)) => explain::run(arguments),
        Some(Action::Where(arguments)) => placement::run(arguments),
        Some(Action::Replay(arguments)) => replay::run(arguments),
        Some(Action::Print(arguments)) => print::run(arguments),
        Some(Action::Pack(arguments)) => pack::run(arguments),
        Some(Action::Unpack(arguments)) => unpack::run(arguments),
        Some(Action::Export(arguments)) => export::run(arguments),
        Some(Action::Calls(arguments)) => calls::run(arguments),
        Some(Action::Report(arguments)) => report::run(arguments),
        Some(Action::Bench(arguments)) => bench::run(arguments),
        Some(Action::Diff(arguments)) => diff::run(arguments),
        Some(Action::WhatIf(arguments)) => what_if::run(arguments),
        Some(Action::Why(arguments)) => why::run(arguments),
        Some(Action::Info(arguments)) => info::run(arguments),
        Some(Action::Engines(arguments)) => engines::run(arguments),
        Some(Action::Doctor(arguments)) => doctor::run(arguments),
        Some(Action::Topology(arguments)) => topology::run(arguments),
        Some(Action::EnergyModel(action)) => energy_model::run(action),
        Some(Action::Completions { shell }) => manual::completions(*shell),
        Some(Action::Man { list: true, .. }) => manual::list(),
        Some(Action::Man { subcommand, .. }) => manual::page(subcommand),
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
            Ok(usage) => refused(&with_usage(usage, &words)),
            Err(error) => {
                while signals::is_ending() {
                    // The signal is what ends this process.
                    std::thread::park();
                }
                stderr::message(chain(&error));
                ExitCode::FAILURE
            }
        },
    }
}

/// Returns an error with its causes, each once: the texts of many have that of their cause in them.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let lacks_descriptors = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) == Some(libc::EMFILE)
    };
    if error.chain().any(lacks_descriptors) {
        text.push_str("; run it after `ulimit -n 1024`, or close some");
    }
    text
}

/// Prepares the process for a command.
fn prepare(action: Option<&Action>) -> anyhow::Result<()> {
    ensure!(
        Uid::current() == Uid::effective(),
        "this program is setuid, which would let every user do with it what root may: remove the bit (chmod u-s), and run it \
         with sudo"
    );
    let action = match action {
        None | Some(Action::Record(_) | Action::Bench(_) | Action::Doctor(_)) => return Ok(()),
        Some(action) if action.fresh_run().is_some_and(FreshRun::is_live) => return Ok(()),
        // It starts this program again, which would inherit what is blocked here.
        Some(Action::Engines(arguments)) if !arguments.command.is_empty() => return Ok(()),
        Some(action) => action,
    };
    // Before there is a second thread.
    let given_up =
        if action.reads_only_files() { caller::keep_file_rights() } else { caller::drop_those_of_program() };
    given_up.context("cannot give up privileges")?;
    match action {
        // It ends by signals with its results.
        Action::Replay(_) => Ok(()),
        _ => signals::remove_unfinished_at_end(),
    }
}

/// Returns an error with the usage of the subcommand that the words name.
fn with_usage(error: clap::Error, words: &[OsString]) -> clap::Error {
    let mut command = Cli::command();
    // From then on subcommands know the name of the program.
    command.build();
    let word = words.get(1).and_then(|word| word.to_str());
    if let Some(subcommand) = word.and_then(|word| command.find_subcommand_mut(word)) {
        return error.format(subcommand);
    }
    error.format(&mut command)
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
