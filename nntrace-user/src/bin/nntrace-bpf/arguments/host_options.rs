//! Options that describe the host, and their files.

use std::path::Path;

use anyhow::Result;
use nntrace_user::{
    live::sysfs,
    model::{
        Topology,
        energy::{self, EnergyModel},
        topology::ClusterDescription,
    },
    small_file,
};

use super::{
    help_headings::POWER,
    values::{cluster, file},
};
use crate::output::inputs;

/// Description of the host by the user.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HostOptions {
    /// Description of the host in TOML
    ///
    /// As `nntrace-bpf topology` writes it.
    #[arg(long, value_name = "FILE", value_parser = file(read_topology), help_heading = POWER, hide_short_help = true)]
    pub topology: Option<Topology>,

    /// CPUs that form a cluster, such as `big=4-7`
    ///
    /// CPUs in no cluster form one called `other`.
    #[arg(long = "cluster", value_name = "NAME=CPUS", value_parser = cluster, help_heading = POWER, hide_short_help = true)]
    pub clusters: Vec<ClusterDescription>,

    /// Cost of idle states and frequencies, for energy
    ///
    /// An energy model, of idlestat's form or (.toml) of ours; `nntrace-bpf energy-model init` writes one to fill in.
    #[arg(long, value_name = "FILE", value_parser = file(read_energy_model), help_heading = POWER, hide_short_help = true)]
    pub energy_model: Option<EnergyModel>,
}

impl HostOptions {
    /// The topology of a live run as the user wants it; `None`: as sysfs has it.
    pub fn live_topology(&self) -> Result<Option<Topology>> {
        if self.topology.is_none() && self.clusters.is_empty() {
            return Ok(None);
        }
        let (mut topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
        if let Some(described) = &self.topology {
            topology.replace_by(described.clone())?;
        }
        if !self.clusters.is_empty() {
            topology.set_clusters(self.clusters.clone())?;
        }
        Ok(Some(topology))
    }
}

/// The description of a host in a file.
fn read_topology(path: &Path) -> Result<Topology, String> {
    Topology::from_toml(&path.to_string_lossy(), &read(path)?).map_err(|error| error.to_string())
}

/// The energy model in a file.
pub(super) fn read_energy_model(path: &Path) -> Result<EnergyModel, String> {
    energy::parse(&path.to_string_lossy(), &read(path)?).map_err(|error| error.to_string())
}

/// The text of a file that describes something.
fn read(path: &Path) -> Result<String, String> {
    inputs::add(path);
    small_file::read_text(path, small_file::DESCRIPTION)
        .map_err(|error| format!("cannot read it: {error}; check the path and its permissions"))
}
