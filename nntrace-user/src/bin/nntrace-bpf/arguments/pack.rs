//! Options of packing recordings, and of unpacking them.

use std::path::PathBuf;

use super::values::size;

/// Packs a recording.
#[derive(Debug, clap::Args)]
pub struct Pack {
    /// Folder of the recording
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Pack [default: the folder's name with .nnpack, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Pack the recording only, not the files that the run used
    #[arg(long)]
    pub no_files: bool,

    /// Leave out files that are larger, such as 64M or 2G
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512M")]
    pub max_file: u64,

    /// Pack files that may hold secrets, too
    ///
    /// By default files with the names of keys, passwords and tokens are left out, and those that begin with a private
    /// key; each is named.
    #[arg(long)]
    pub with_secrets: bool,

    /// Replace the pack if it exists
    #[arg(long)]
    pub force: bool,
}

/// Unpacks a pack.
#[derive(Debug, clap::Args)]
pub struct Unpack {
    /// Pack
    #[arg(value_name = "FILE")]
    pub pack: PathBuf,

    /// Folder, which must be new or empty [default: the pack's name without .nnpack, in the current folder]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Refuse packs that unpack to more, such as 1G
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16G")]
    pub max_size: u64,
}
