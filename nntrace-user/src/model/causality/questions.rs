//! Questions about causes.

use serde::{Deserialize, Serialize};

/// Questions about causes, beyond what the attributes of marks answer by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
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
    /// Keep this many of the slowest iterations of each function; `None`: [`Questions::SLOWEST`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<u32>,
    /// Keep every iteration, for lists.
    #[serde(skip)]
    pub every_iteration: bool,
}

impl Questions {
    /// The slowest iterations of each function that are kept where nobody asks for more.
    pub const SLOWEST: u32 = 20;

    /// The slowest iterations of each function that are kept.
    #[must_use]
    pub(super) fn slowest(&self) -> usize {
        self.slowest.unwrap_or(Self::SLOWEST) as usize
    }

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
