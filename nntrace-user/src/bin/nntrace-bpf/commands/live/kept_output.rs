//! Output of a command that is kept while the terminal is ours.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    os::unix::fs::OpenOptionsExt as _,
};

use anyhow::{Context as _, Result};
use nix::libc;

use crate::output;

/// Creates a file without a name.
pub(super) fn scratch_file() -> Result<File> {
    let folder = std::env::temp_dir();
    File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(&folder)
        .with_context(|| format!("cannot keep the command's output in {}", folder.display()))
}

/// Shows what the command printed.
pub(super) fn show(mut file: File) -> Result<()> {
    let mut printed = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut printed))
        .context("cannot read the command's output")?;
    output::write_stdout(&printed).context("cannot show the command's output")
}
