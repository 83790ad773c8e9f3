//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Runs a convolutional network as application, NN runtime, driver process and CPU fallback, and marks what
/// it does.
///
/// Every result is checked against the same network run in one piece; a wrong one ends the program with
/// status 1.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Role of this process; by default the application.
    #[command(subcommand)]
    pub role: Option<Role>,
    /// Options of the application.
    #[command(flatten)]
    pub options: Options,
}

/// Role of a process, beside the application.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// The driver; the application starts it, with a listening socket as its standard input.
    #[command(hide = true)]
    Driver {
        /// Connections beside the one that controls the driver.
        connections: usize,
    },
}

/// Options of the application.
#[derive(Debug, Args)]
pub struct Options {
    /// How long to run.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub seconds: f64,
    /// Classify exactly this many images instead.
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub inferences: Option<u64>,
    /// Threads that classify images; the driver has as many.
    #[arg(long, value_name = "N", default_value = "3")]
    pub threads: NonZeroUsize,
    /// Milliseconds that a thread sleeps after each image, so that the CPUs have idle time.
    #[arg(long, value_name = "MS", default_value_t = 5)]
    pause: u64,
    /// Seed of weights and images.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write what was counted and timed, for comparison with a profiler's results.
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Classify every image once, and be done.
    #[arg(long, conflicts_with_all = ["seconds", "inferences"])]
    pub self_check: bool,
    /// Print nothing.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Options {
    /// Returns how long a thread sleeps after each image.
    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        let cli = Cli::parse_from(["nntrace-workload", "driver", "3"]);
        assert!(matches!(cli.role, Some(Role::Driver { connections: 3 })));
        assert!(Cli::try_parse_from(["nntrace-workload", "--threads", "0"]).is_err());
    }
}
