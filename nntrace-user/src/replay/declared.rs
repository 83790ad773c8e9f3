//! Facts about a run that a trace declares, and none of its events shows.

use crate::perfetto_schema::own::PowerFacts;

/// Declared facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// Begin and end of the window, ns, which may be longer than the time of the events.
    pub(crate) window: Option<(u64, u64)>,
    /// CPUs, and their state at the begin of the window.
    pub(crate) power: Option<PowerFacts>,
}
