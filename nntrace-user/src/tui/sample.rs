//! Sample: results, the state of the collector, and what was added since the sample before.

pub(super) mod added;

use self::added::Added;
use super::Health;
use crate::report::snapshot::Snapshot;

/// Results and the state of the collector at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The results.
    pub snapshot: Snapshot,
    /// The state of the collector.
    pub health: Health,
    /// Times that came since the snapshot before.
    pub added: Added,
}
