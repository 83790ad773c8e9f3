//! `nntrace-bpf pack`: a recording in one file, with the files that its run used.

use std::{ffi::OsString, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use nntrace_user::record::{self, PackOptions, Packed};

use super::recording_folder;
use crate::{arguments::Pack, output::result_file::ResultFile, stderr};

/// Packs a recording; returns the exit status.
pub fn run(cli: &Pack) -> Result<ExitCode> {
    recording_folder::check(&cli.folder, "`pack`")?;
    let file = match &cli.output {
        Some(file) => file.clone(),
        None => default_name(cli)?,
    };
    let options =
        PackOptions { with_files: !cli.no_files, max_file: cli.max_file, with_secrets: cli.with_secrets };
    let mut packed = None;
    let staged = ResultFile::open(&file, cli.force)?.stage_streamed(|out| {
        packed = Some(record::pack(&cli.folder, out, &options)?);
        Ok(())
    })?;
    staged.commit()?;
    let Packed { files, bytes, notes } = packed.unwrap_or_default();
    notes.iter().for_each(stderr::message);
    let (folder, file, megabytes) = (cli.folder.display(), file.display(), bytes as f64 / 1e6);
    let files = match files {
        0 => String::new(),
        1 => " and one file".to_owned(),
        many => format!(" and {many} files"),
    };
    stderr::message(format_args!(
        "packed {folder}{files} to {file}, {megabytes:.1} MB; unpack it with: nntrace-bpf unpack {file}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the folder, whatever way leads to it, with the ending of packs.
fn default_name(cli: &Pack) -> Result<PathBuf> {
    let folder =
        fs::canonicalize(&cli.folder).with_context(|| format!("cannot read {}", cli.folder.display()))?;
    let mut name =
        OsString::from(folder.file_name().context("this folder has no name: name the pack with -o")?);
    name.push(".nnpack");
    Ok(name.into())
}
