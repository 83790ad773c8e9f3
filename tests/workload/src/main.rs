//! A real network in the architecture of typical systems: an application whose threads call an NN runtime, a driver
//! in a process of its own that runs the first part of the network, and a CPU fallback for the rest, fully marked by
//! the contract.
//!
//! It serves to demonstrate and to measure the profiler, and as an example of a marked program.

mod application;
mod driver;
mod engine;
mod images;
mod ipc;
mod network;
mod onnx;
mod options;
mod protocol;
mod random;
mod runtime;
mod truth;
mod workers;

use std::process::ExitCode;

use clap::Parser as _;
use nntrace_common::emit;

use crate::options::{Cli, Role};

fn main() -> ExitCode {
    let cli = Cli::parse();
    emit::init(std::process::id());
    let result = match cli.role {
        None => application::run(&cli.options),
        Some(Role::Driver { connections }) => driver::run(connections),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nntrace-workload: {error:#}");
            ExitCode::FAILURE
        }
    }
}
