//! Options of showing the calls of a recording.

use std::path::PathBuf;

/// Shows recorded calls.
#[derive(Debug, clap::Args)]
pub struct Calls {
    /// Folder of the recording
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}
