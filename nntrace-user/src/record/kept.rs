//! Begin of what is kept of a run whose older events were given up.

use serde::{Deserialize, Serialize};

use crate::model::initial_state::InitialState;

/// Begin of what is kept of a run. Of the events before it only those of the stream of the run are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Time from which everything is there, ns.
    pub(super) begin_ns: u64,
    /// Number of the first event from which on every event of every stream is there.
    pub(super) first_event: u64,
    /// State of the CPUs after the events before it.
    pub(super) initial: InitialState,
}
