//! The profiler on the example network.

use std::{
    io::{IsTerminal, stdout},
    os::unix::process::CommandExt,
};

use anyhow::{Error, Result};
use clap::Args;

use crate::{
    run::{as_root, cargo, command, run, target_dir},
    setup,
};

/// Options of the demonstration.
#[derive(Args)]
pub struct Demo {
    /// How long the network runs [default: 600 on a terminal, else 30]
    #[arg(long)]
    seconds: Option<u32>,
    /// Arguments for nntrace-bpf, after `--`
    #[arg(last = true)]
    args: Vec<String>,
}

/// Builds everything in release mode.
pub fn build() -> Result<()> {
    setup::build()?;
    run(cargo("build").arg("--release"))
}

impl Demo {
    /// Becomes the profiler, which launches the network and ends with it.
    pub fn run(&self) -> Result<()> {
        build()?;
        setup::live()?;
        // On a terminal the user looks around and quits; elsewhere a program waits for the end.
        let seconds = self.seconds.unwrap_or(if stdout().is_terminal() { 600 } else { 30 });
        let release = target_dir()?.join("release");
        let mut profiler = command(release.join("nntrace-bpf"));
        profiler.args(&self.args).arg("--").arg(release.join("nntrace-workload"));
        profiler.args(["--quiet", "--seconds", &seconds.to_string()]);
        let mut profiler = as_root(profiler)?;
        Err(Error::new(profiler.exec()).context("the profiler does not start"))
    }
}
