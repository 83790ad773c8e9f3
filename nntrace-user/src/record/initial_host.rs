//! The host when the window begins: its CPUs and clusters, and their states then.

use serde::{Deserialize, Serialize};

use crate::model::{Topology, initial_state::InitialState};

/// CPUs and clusters, and their states when the window begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InitialHost {
    /// CPUs and clusters.
    pub(super) topology: Topology,
    /// State of the CPUs when the window begins.
    pub(super) initial: InitialState,
}

impl InitialHost {
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
