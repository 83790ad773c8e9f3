//! Marked functions, as causes are summed by them.

use nntrace_common::layer::Tag;

use crate::model::capped_table::{Key, OTHERS_NAME, OTHERS_PID};

/// A marked function: process, layer and phase, and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Site {
    /// Process.
    pub pid: u32,
    /// Its layer and phase.
    pub tag: Tag,
    /// Hash of its name.
    pub name: u64,
}

impl Key for Site {
    fn coarser(&self) -> Option<Self> {
        match *self {
            Self { pid: OTHERS_PID, name: OTHERS_NAME, .. } => None,
            Self { name: OTHERS_NAME, .. } => Some(Self { pid: OTHERS_PID, ..*self }),
            _ => Some(Self { name: OTHERS_NAME, ..*self }),
        }
    }

    fn is_others(&self) -> bool {
        self.name == OTHERS_NAME
    }
}
