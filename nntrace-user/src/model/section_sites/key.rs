//! Identity of a site, and what it becomes where single ones have no room.

use super::{
    super::capped_table::{Key, OTHERS_NAME, OTHERS_PID},
    RECENT,
};

/// Identity of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteKey {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The stack.
    pub path: u64,
    /// Hash of the name.
    pub name: u64,
    /// Whether its sections are inside others of the same function.
    pub in_itself: bool,
    /// Its thread had shown interface calls only: it counts if the thread takes part in the end.
    pub provisional: bool,
    /// Whether its name matters beyond its words: to executions, or as that of a driver.
    pub keeps_name: bool,
}

/// A thread that never takes part: what is summed of threads that might.
pub(super) const NOBODY: u32 = u32::MAX;

impl Key for SiteKey {
    fn coarser(&self) -> Option<Self> {
        let tid = if self.provisional { NOBODY } else { 0 };
        match *self {
            Self { name, keeps_name: false, .. } if name != OTHERS_NAME => {
                Some(Self { name: OTHERS_NAME, ..*self })
            }
            Self { pid: OTHERS_PID, .. } if self.tid == tid && self.name == OTHERS_NAME => None,
            _ if self.tid != tid && !self.provisional => Some(Self { tid, ..*self }),
            _ => Some(Self { pid: OTHERS_PID, tid, name: OTHERS_NAME, keeps_name: false, ..*self }),
        }
    }

    fn is_others(&self) -> bool {
        self.name == OTHERS_NAME
    }
}

impl SiteKey {
    /// Where the number of such a site is kept in [`Sites::recent`](super::Sites). Paths and names are hashes already.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.path ^ self.name ^ u64::from(self.tid)).wrapping_mul(MIX);
        (mixed >> (64 - RECENT.trailing_zeros())) as usize
    }

    /// Whether it is the key of a span, whatever its name matters for.
    #[inline]
    pub(super) fn is_of(&self, span: &Self) -> bool {
        Self { keeps_name: false, ..*self } == *span
    }
}
