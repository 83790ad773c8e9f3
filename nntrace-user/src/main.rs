//! `nntrace-bpf`: the command.

// What people read goes through `output`, which lets no character act on their terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod baseline;
mod cli;
mod energy_command;
mod files;
mod gates;
mod machine;
mod manual;
mod output;
mod replay_command;
mod result_file;
mod run;
mod screen;
mod signals;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use nntrace_user::report::text::Text;

/// Exit status when the command line is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    if let Some(cli::Action::Replay(replay)) = &mut cli.action {
        replay.settle_json(std::env::args_os());
    }
    let results = match &cli.action {
        Some(cli::Action::Replay(replay)) => &replay.results,
        _ => &cli.live.results,
    };
    if let Err(error) = results.check() {
        return refused(&error);
    }
    let done = match &cli.action {
        Some(cli::Action::Replay(replay)) => replay_command::run(replay),
        Some(cli::Action::Print(print)) => replay_command::print(print),
        Some(cli::Action::Topology(topology)) => machine::show(topology),
        Some(cli::Action::EnergyModel(action)) => energy_command::run(action),
        Some(cli::Action::Completions { shell }) => manual::completions(*shell),
        Some(cli::Action::Man) => manual::page(),
        None => run::run(&cli.live),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            output::message(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
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
