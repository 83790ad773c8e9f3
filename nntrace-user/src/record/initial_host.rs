//! The host when the window begins: its CPUs and clusters, and their states then.

use serde::{Deserialize, Serialize};

use crate::model::{MAX_CPU, Topology, initial_state::InitialState};

/// CPUs and clusters, and their states when the window begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InitialHost {
    /// CPUs and clusters.
    pub(super) topology: Topology,
    /// State of the CPUs when the window begins.
    pub(super) initial: InitialState,
}

impl InitialHost {
    /// Checks the numbers of its CPUs: tables are as long as the largest one.
    ///
    /// # Errors
    /// When one is larger than any CPU's, with a text that says which.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { topology, initial } = self;
        let clusters = topology.clusters.iter().flat_map(|cluster| &cluster.cpus);
        let cpus = topology.cpus.keys().chain(clusters).chain(topology.policies.iter().flatten());
        match cpus.chain(initial.cpus.keys()).find(|cpu| **cpu > MAX_CPU) {
            Some(cpu) => Err(format!("its host has CPU {cpu}, and {MAX_CPU} is the largest number of one")),
            None => Ok(()),
        }
    }

    /// Returns it as JSON.
    pub(super) fn json(topology: &Topology, initial: &InitialState) -> Vec<u8> {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            topology: &'a Topology,
            initial: &'a InitialState,
        }
        // Maps with numbers as keys, texts and numbers: all of it has a form in JSON.
        serde_json::to_vec(&Borrowed { topology, initial }).unwrap_or_default()
    }
}
