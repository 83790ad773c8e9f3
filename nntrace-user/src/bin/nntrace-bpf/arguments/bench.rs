//! Options of running a command several times.

use std::path::Path;

use anyhow::Result;

use super::{
    Live,
    help_headings::{OUTPUT, TARGET},
    usage,
};

/// Runs a command several times.
#[derive(Debug, clap::Args)]
pub struct Bench {
    /// Each run; `-o` names the folder of their snapshots.
    #[command(flatten)]
    pub live: Live,

    /// Number of runs that are kept
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000),
          help_heading = TARGET)]
    pub runs: u32,

    /// Number of warm-up runs before them, whose results are discarded
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000),
          help_heading = TARGET)]
    pub warm_up: u32,

    /// Add runs to those already in the folder
    #[arg(long, conflicts_with = "force", help_heading = OUTPUT)]
    pub add: bool,
}

impl Bench {
    /// Returns the folder of the snapshots.
    ///
    /// # Errors
    /// When none is named, no command is, or results are asked for that are those of a single run.
    pub fn folder(&self) -> Result<&Path> {
        let results = &self.live.results;
        let Some(folder) = results.recording().filter(|_| results.files().next().is_none()) else {
            return Err(usage(
                "name one folder for the snapshots of the runs with -o, such as -o before".into(),
            ));
        };
        if self.live.command.is_empty() {
            return Err(usage(
                "name the command that is run, after `--`: nntrace-bpf bench -o before -- ./app".into(),
            ));
        }
        let is_of_one_run =
            results.json.is_some() || self.live.json_lines || results.table.is_some() || results.timeline;
        if is_of_one_run {
            return Err(usage(
                "bench prints no results: leave out --json, --json-lines, --table and --timeline".into(),
            ));
        }
        Ok(folder)
    }
}
