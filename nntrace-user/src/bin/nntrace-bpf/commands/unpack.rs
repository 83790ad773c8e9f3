//! `nntrace-bpf unpack`: the folder of a recording from a pack.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use nntrace_user::record::{self, Unpacked};

use crate::{arguments::Unpack, stderr};

/// Unpacks a pack; returns the exit status.
pub fn run(cli: &Unpack) -> Result<ExitCode> {
    let folder = match &cli.output {
        Some(folder) => folder.clone(),
        None => default_name(cli)?,
    };
    let Unpacked { files, bytes } = record::unpack(&cli.pack, &folder, cli.max_size)?;
    let (folder, megabytes) = (folder.display(), bytes as f64 / 1e6);
    let files = match files {
        0 => "a recording".to_owned(),
        1 => "a recording and one file".to_owned(),
        many => format!("a recording and {many} files"),
    };
    stderr::message(format_args!(
        "unpacked {files}, {megabytes:.1} MB, to {folder}; look at it with: nntrace-bpf replay {folder}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the pack without its ending.
fn default_name(cli: &Unpack) -> Result<PathBuf> {
    let ending = cli.pack.extension().filter(|ending| *ending == "nnpack");
    match ending.and(cli.pack.file_stem()) {
        Some(name) => Ok(name.into()),
        None => bail!("the name of {} does not end in .nnpack: name the folder with -o", cli.pack.display()),
    }
}
