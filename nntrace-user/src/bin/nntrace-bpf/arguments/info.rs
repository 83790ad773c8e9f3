//! Options of describing a recording.

use std::path::PathBuf;

use super::help_headings::OUTPUT;

/// Describes what is in a recording.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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

    /// With --compare: exit with 3 when there is a difference
    #[arg(long, requires = "compare", help_heading = OUTPUT)]
    pub strict: bool,

    /// Print the command line that was recorded, and nothing else
    #[arg(long, conflicts_with_all = ["json", "compare", "check"], help_heading = OUTPUT)]
    pub command: bool,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}
