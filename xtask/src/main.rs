//! Development tasks of nntrace-bpf: `cargo xtask setup`, `build`, `demo`, `engines`, `picture`, `test`, `bench`,
//! `instructions`, `what-if`, `soak`, `lint`, `fuzz`, `vm`, `dist`.
//!
//! They run as an ordinary user; steps that need root use sudo.

mod apt;
mod arch;
mod bench;
mod cross;
mod debian;
mod demo;
mod dist;
mod emulator;
mod engines;
mod fuzz;
mod instructions;
mod lint;
mod picture;
mod run;
mod setup;
mod side_by_side;
mod soak;
mod target_libraries;
mod test;
mod vm;
mod what_if;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Development tasks of nntrace-bpf.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

/// Task on the command line.
#[derive(Subcommand)]
enum Task {
    /// Find or install what building and live profiling need
    Setup {
        /// Also the tools of `lint`
        #[arg(long)]
        lint: bool,
        /// Also the tools of `vm`
        #[arg(long)]
        vm: bool,
    },
    /// Set up, then build everything in release mode
    Build,
    /// Set up, build the profiler and the example network, and profile it
    Demo(demo::Demo),
    /// Fetch real engines and make models for them, for tests and demos
    Engines(engines::Engines),
    /// Render the pictures of the documentation, from runs on the example network
    Picture,
    /// Set up, then run all tests, the live ones as root
    Test {
        /// Arguments for `cargo test`, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Set up, build, and measure the cost of profiling on this host
    Bench(bench::Bench),
    /// Count the instructions that marks take, and compare them with the counts that are kept
    Instructions(instructions::Instructions),
    /// Predict a pipeline at other speeds, and compare with runs that really have them
    WhatIf(what_if::WhatIf),
    /// Flood the profiler, live and with files, for minutes each, and check that its memory stays within its bound
    Soak(soak::Soak),
    /// Part of `bench`
    #[command(hide = true, subcommand)]
    BenchPart(bench::Part),
    /// Check format, lints, documentation, spelling and licences
    Lint,
    /// Fuzz the parsers and the accounting
    Fuzz(fuzz::Fuzz),
    /// Run the profiler and its live tests on other kernels, in VMs
    Vm(vm::Vm),
    /// Build static programs for both architectures, and pack them
    Dist(dist::Dist),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Setup { lint, vm } => setup::asked(lint, vm),
        Task::Build => demo::build(),
        Task::Demo(demo) => demo.run(),
        Task::Engines(engines) => engines.run(),
        Task::Picture => picture::render(),
        Task::Test { args } => test::run_all(&args),
        Task::Bench(bench) => bench.run(),
        Task::Instructions(instructions) => instructions.run(),
        Task::WhatIf(what_if) => what_if.run(),
        Task::Soak(soak) => soak.run(),
        Task::BenchPart(part) => part.run(),
        Task::Lint => lint::run_all(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Vm(vm) => vm.run(),
        Task::Dist(dist) => dist.run(),
    }
}
