//! Options of all questions to the graph of a run.

use std::path::PathBuf;

use nntrace_user::replay::TimeRange;

use super::{
    HostOptions,
    help_headings::{LIMITS, OUTPUT, TARGET},
    values::{table_memory, time_range},
};

/// Run that is asked about, and the form of the answer.
#[derive(Debug, clap::Args)]
pub struct GraphQuestion {
    /// Folder of a recording, or trace files; `-` is standard input. Several files are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Take this part of traces only, in seconds of their clock: 2084.02..2084.45
    #[arg(long, value_name = "FROM..TO", value_parser = time_range, help_heading = TARGET)]
    pub time_range: Option<TimeRange>,

    /// The host of traces.
    #[command(flatten)]
    pub host: HostOptions,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,

    /// Memory for sections, hand-overs and context switches, such as 1G
    ///
    /// A run with more than there is room for is refused. Default: as for `replay`.
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS)]
    pub memory: Option<u64>,
}
