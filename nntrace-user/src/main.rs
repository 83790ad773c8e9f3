//! `nntrace-bpf`: the command.

mod baseline;
mod cli;
mod energy_command;
mod files;
mod gates;
mod machine;
mod manual;
mod output;
mod replay_command;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let results = match &cli.action {
        Some(cli::Action::Replay(replay)) => &replay.results,
        _ => &cli.live.results,
    };
    if let Err(error) = results.check() {
        error.exit();
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
            eprintln!("nntrace-bpf: {error:#}");
            ExitCode::FAILURE
        }
    }
}
