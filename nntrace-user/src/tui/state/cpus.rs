//! The CPUs view: clusters and their CPUs as one list.

use super::Sample;
use super::list::List;
use crate::report::cpu_or_cluster::{self, CpuOrCluster};

/// The state of the CPUs view: each cluster followed by its CPUs; CPUs without a cluster come last.
pub(crate) type Cpus = List<CpuOrCluster>;

impl Cpus {
    /// Takes over a new snapshot.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        self.set_keys(cpu_or_cluster::all(&sample.snapshot));
    }
}
