//! Questions about causes.

use serde::{Deserialize, Serialize};

/// Questions about causes, beyond what the attributes of marks answer by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Questions {
    /// Number the occurrences of this function: each is an iteration.
    pub iteration_root: Option<String>,
    /// Group by the values of this attribute.
    pub by: Option<String>,
    /// Explain why this function takes now more, now less time.
    pub explain: Option<String>,
    /// Tell what no section covers, of every outermost section.
    pub missing: bool,
    /// Keep every section, with what caused it.
    pub graph: bool,
    /// Put hand-overs together: one by one, and what they add up to.
    #[serde(default)]
    pub hand_overs: bool,
}

impl Questions {
    /// Whether begins matter that have nothing but layer, phase and name.
    #[must_use]
    pub(crate) fn need_all_begins(&self) -> bool {
        self.iteration_root.is_some() || self.graph
    }

    /// Whether sections matter whose marks carry no cause.
    #[must_use]
    pub(super) fn need_all_spans(&self) -> bool {
        self.need_all_begins() || self.explain.is_some() || self.missing
    }
}
