//! Sections that had not ended.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section that had not ended when the window did. It is in no other table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnfinishedRow {
    /// Process id; `null` where it is not known.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: u32,
    /// Layer; `null` where it is not known.
    pub layer: Option<Layer>,
    /// Phase; `null` where it is not known.
    pub phase: Option<Phase>,
    /// Name from the mark, without its `#key=value` pairs.
    pub name: String,
    /// Sections around it that had not ended either.
    pub depth: u8,
    /// When it began, ns.
    pub begin_ns: u64,
    /// Time from then to the end of the window, ns: it takes at least that.
    pub open_ns: u64,
}
