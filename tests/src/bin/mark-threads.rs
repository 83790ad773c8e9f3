//! Starts threads that each write one section and live until all have: for tables by thread that are too small.

use std::{process::ExitCode, sync::Barrier, thread};

use clap::Parser;
use nntrace_common::{
    emit::{self, Section},
    layer::{Layer, Phase},
};

/// Starts threads that each write one section.
#[derive(Debug, Parser)]
struct Cli {
    /// Number of threads.
    #[arg(long)]
    threads: usize,
}

/// Stack size of a thread, bytes: hardly any is needed, and there are many threads.
const STACK: usize = 64 * 1024;

fn main() -> ExitCode {
    let cli = Cli::parse();
    emit::init(std::process::id());
    let all_have_marked = Barrier::new(cli.threads);
    let started = thread::scope(|scope| {
        (0..cli.threads).all(|_| {
            let mark = || {
                drop(Section::begin(Layer::Runtime, Phase::Execution, "work"));
                all_have_marked.wait();
            };
            let spawned = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, mark);
            // The running threads wait for the ones that could not be started.
            spawned.is_ok() || std::process::exit(1)
        })
    });
    if started { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
