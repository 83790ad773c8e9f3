//! `nntrace-bpf topology`: this machine, as a file for `--topology`.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use nntrace_user::live::sysfs;

use crate::{
    arguments::ShowTopology,
    output::{self, result_file},
};

/// Writes the description of this machine; returns the exit status.
pub fn run(cli: &ShowTopology) -> Result<ExitCode> {
    let (topology, note) = sysfs::topology(Path::new(sysfs::CPUS));
    let note = note.map(|note| format!("# {note}\n")).unwrap_or_default();
    let text = format!("{note}{}", topology.to_toml());
    match &cli.file {
        Some(path) => result_file::write(path, cli.force, &text)?,
        None => output::write_stdout(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
