//! The CPUs view: clusters and their CPUs as one list.

use super::list::List;
use crate::report::cpu_or_cluster::{self, CpuOrCluster};
use crate::report::snapshot::Snapshot;

/// The state of the CPUs view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus {
    /// Each cluster followed by its CPUs; CPUs without a cluster come last.
    pub list: List<CpuOrCluster>,
}

impl Cpus {
    /// Takes over a new snapshot.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot) {
        self.list.set_keys(cpu_or_cluster::all(snapshot));
    }
}
