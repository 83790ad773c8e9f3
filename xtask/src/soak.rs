//! `cargo xtask soak`: floods of everything that tables hold, and the example network, for any length of time, against the
//! documented bound on memory. Too long for the tests, which do the same for seconds.

use anyhow::Result;
use clap::Args;

use crate::{
    run::{cargo, run},
    setup, test,
};

/// Options of the floods.
#[derive(Args)]
pub struct Soak {
    /// Seconds of each live flood; files are as many times as long
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(3..))]
    seconds: u64,
    /// Replay files only, which needs no root
    #[arg(long)]
    files: bool,
}

impl Soak {
    /// Builds everything, and runs the floods one after another.
    pub fn run(&self) -> Result<()> {
        let mut test = if self.files {
            cargo("test")
        } else {
            setup::live()?;
            test::live()?
        };
        run(cargo("build").args(["--release", "--quiet"]))?;
        test.args(["--release", "--package", "nntrace-tests", "--test", "program", "--"]);
        test.args(["--test-threads", "1", "--nocapture"]);
        test.arg(if self.files { "memory::files_" } else { "memory::" });
        run(test.env("NNTRACE_SOAK_SECONDS", self.seconds.to_string()))
    }
}
