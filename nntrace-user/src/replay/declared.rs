//! Facts about a run that a trace declares, and none of its events shows.

use crate::perfetto_schema::own::{OwnRun, PowerFacts};

/// Declared facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Declared {
    /// Begin and end of the window, ns, which events need not fill, and may be outside of.
    pub(crate) window: Option<(u64, u64)>,
    /// CPUs, and their state at the begin of the window.
    pub(crate) power: Option<PowerFacts>,
    /// Host and drivers.
    pub(crate) run: Option<OwnRun>,
}
