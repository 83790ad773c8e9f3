//! Words of this program's own traces, which an export writes and a replay reads: `docs/perfetto.md` lists what they are.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{initial_state::InitialState, run_facts::Host, topology::Topology};

/// Annotation of a section: layer and phase.
pub(crate) const LAYER_PHASE: &str = "layer_phase";
/// Annotation of a section: class, where it is not the usual one.
pub(crate) const CLASS: &str = "class";
/// Value of that: time that is subtracted from the sections around.
pub(crate) const SUBTRACTED: &str = "subtracted";
/// Annotations of a section: attributes.
pub(crate) const ITERATION: &str = "iteration";
pub(crate) const ACCOUNT: &str = "account";
/// Begin of the keys of other attributes.
pub(crate) const ATTRIBUTE: &str = "attribute.";
/// Annotation of a section: text of all attributes, where the others lose something.
pub(crate) const ATTRIBUTES: &str = "attributes";
/// Annotation of an instant: text of a mark that is no section.
pub(crate) const MARK: &str = "mark";
/// Category of what is drawn of hand-overs.
pub(crate) const HAND_OVER: &str = "hand_over";
/// Category and name of work that was taken before it was given.
pub(crate) const VIOLATION: &str = "hb_violation";
/// Annotation of what is drawn of hand-overs that marks show.
pub(crate) const HANDLE: &str = "handle";

/// Attributes of a trace: begin and end of the window, ns, on the clock of the trace.
pub(crate) const WINDOW_BEGIN: &str = "nntrace.window_begin_ns";
pub(crate) const WINDOW_END: &str = "nntrace.window_end_ns";
/// Attribute of a trace: [`PowerFacts`], as JSON.
pub(crate) const POWER: &str = "nntrace.power";

/// Attribute of a trace: [`OwnRun`], as JSON.
pub(crate) const RUN: &str = "nntrace.run";

/// Facts about a run that no event shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OwnRun {
    /// Host.
    pub(crate) host: Host,
    /// Processes that are drivers.
    pub(crate) drivers: BTreeSet<u32>,
}

/// Facts about CPUs that no event shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PowerFacts {
    /// CPUs and clusters.
    pub(crate) topology: Topology,
    /// State of the CPUs at the begin of the window.
    pub(crate) initial: InitialState,
}
