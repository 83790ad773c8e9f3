//! Options of looking for engines.

use std::{ffi::OsString, path::PathBuf};

/// Looks for engines.
#[derive(Debug, clap::Args)]
pub struct Engines {
    /// Processes by number, and files: libraries and programs
    #[arg(value_name = "PID|FILE")]
    pub targets: Vec<String>,

    /// Look for this engine only; may be given several times
    #[arg(long = "engine", value_name = "NAME")]
    pub names: Vec<String>,

    /// Add the engines of this map
    ///
    /// An engine of the same name is replaced. May be given several times.
    #[arg(long = "map", value_name = "FILE")]
    pub maps: Vec<PathBuf>,

    /// Propose a map for an unknown library
    ///
    /// Ranks its functions by the calls and times of the command after `--`, which should run the model at least ten times; without
    /// a command, by name and code size. Prints the map to stdout.
    #[arg(long, conflicts_with_all = ["names", "maps", "all", "json"])]
    pub propose: bool,

    /// Command that uses the library
    #[arg(last = true, value_name = "COMMAND", requires = "propose")]
    pub command: Vec<OsString>,

    /// List each function
    ///
    /// By default many functions of one line of a map are summed up.
    #[arg(long)]
    pub all: bool,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
