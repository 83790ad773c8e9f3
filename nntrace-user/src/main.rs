//! `nntrace-bpf`: the command.

mod cli;
mod output;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match run::run(&cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nntrace-bpf: {error:#}");
            ExitCode::FAILURE
        }
    }
}
