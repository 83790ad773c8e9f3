//! What the user says of the machine, and `nntrace-bpf topology`, which says what this one is.

use std::{fs, path::Path, process::ExitCode};

use anyhow::Result;
use nntrace_user::{live::sysfs, model::Topology};

use crate::{
    arguments::{Machine, ShowTopology},
    output::{self, result_file},
};

/// The description of a machine in a file.
pub fn read(path: &Path) -> Result<Topology, String> {
    let name = path.to_string_lossy();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read it: {error}"))?;
    Topology::from_toml(&name, &text).map_err(|error| error.to_string())
}

/// The topology of a live run as the user wants it; `None`: as sysfs has it.
pub fn live(machine: &Machine) -> Result<Option<Topology>> {
    if machine.topology.is_none() && machine.clusters.is_empty() {
        return Ok(None);
    }
    let (mut topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
    if let Some(described) = &machine.topology {
        topology.replace_by(described.clone())?;
    }
    if !machine.clusters.is_empty() {
        topology.set_clusters(machine.clusters.clone())?;
    }
    Ok(Some(topology))
}

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
