//! A real network in the shape that such systems have: an application whose threads call an NN runtime, a
//! driver in a process of its own that runs the first part of the network, and a CPU fallback for the rest,
//! marked by the contract throughout.
//!
//! It is what the profiler is demonstrated on and measured against, and an example of how a program is
//! marked.

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
