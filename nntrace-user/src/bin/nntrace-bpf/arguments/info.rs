//! Options of telling what a recording has.

use std::path::PathBuf;

use super::help_headings::OUTPUT;

/// Tells what is in a recording.
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Folder of the recording
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Read everything and check it against its checksums; exit with 1 when something is damaged
    #[arg(long, help_heading = OUTPUT)]
    pub check: bool,

    /// Compare with this machine, one line for each difference
    ///
    /// Kernel, CPUs, variables of the environment, and the files that were probed.
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub compare: bool,

    /// Print the command line that was recorded, and nothing else
    #[arg(long, conflicts_with_all = ["json", "compare", "check"], help_heading = OUTPUT)]
    pub command: bool,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}
