//! The profiler on the example network, or on a real engine.

use std::{
    io::{IsTerminal, stdout},
    os::unix::process::CommandExt,
};

use anyhow::{Error, Result};
use clap::Args;

use crate::{
    engines::{self, Engine, Size},
    run::{as_root, cargo, command, run, target_dir},
    setup,
    side_by_side::{self, Part},
    target_libraries,
};

/// The profile of the two programs: compiled fast.
const PROFILE: &str = "demo";

/// How the profiler is shown.
#[derive(Args)]
pub struct Demo {
    /// How long the network runs [default: 600 on a terminal, else 30]
    #[arg(long)]
    seconds: Option<u32>,
    /// A real engine in the place of the example network: onnxruntime, litert, ncnn, openvino, mnn, llama, tract
    #[arg(long, value_parser = engines::named)]
    engine: Option<&'static Engine>,
    /// Arguments for nntrace-bpf, after `--`
    #[arg(last = true)]
    args: Vec<String>,
}

/// Builds everything in release mode.
pub fn build() -> Result<()> {
    setup::build()?;
    run(cargo("build").arg("--release"))?;
    target_libraries::beside("release")
}

impl Demo {
    /// Becomes the profiler, which launches the network and ends with it.
    pub fn run(&self) -> Result<()> {
        // On a terminal people look around and quit; elsewhere somebody waits for the end.
        let seconds = self.seconds.unwrap_or(if stdout().is_terminal() { 600 } else { 30 });
        let programs = target_dir()?.join(PROFILE);
        let mut profiler = command(programs.join("nntrace-bpf"));
        profiler.args(&self.args).arg("--");
        match self.engine {
            None => {
                profiler.arg(programs.join("nntrace-workload"));
                profiler.args(["--quiet", "--seconds", &seconds.to_string()]);
            }
            Some(engine) => {
                profiler.arg(engine.environment()?).arg(engine.script()).arg(engine.model(Size::Large)?);
                profiler.args(["1", "--seconds", &seconds.to_string()]);
            }
        }
        // A password is asked for before the minutes that the rest takes. Whoever has none has the programs then.
        let profiler = as_root(profiler);
        prepare()?;
        Err(Error::new(profiler?.exec()).context("the profiler does not start"))
    }
}

/// Sets up and builds the two programs. The network is compiled while what the kernel programs need is installed.
fn prepare() -> Result<()> {
    setup::c_compiler()?;
    side_by_side::all(vec![
        Part::new("tools for the kernel programs", || setup::toolchain().map(drop)),
        Part::new("the example network", || build_programs(&["--bin", "nntrace-workload"])),
        Part::new("the kernel's tracing files", setup::live),
    ])?;
    build_programs(&["--bins"])?;
    target_libraries::beside(PROFILE)
}

/// Compiles these of the demo's programs. Both packages are named always: with other features the libraries that they share
/// would be compiled again.
fn build_programs(which: &[&str]) -> Result<()> {
    let packages = ["--package", "nntrace-user", "--package", "nntrace-workload"];
    run(cargo("build").args(["--profile", PROFILE]).args(packages).args(which))
}
