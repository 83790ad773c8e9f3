//! Events of marks and threads that wait until all before them have come.

use nntrace_common::{
    attributes::Handle,
    mark::{self, Kind},
};

use super::{
    Origin,
    hand_overs::{HandOverEvent, Moment},
};

/// An event that waits for its place in time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Begin {
        origin: Origin,
        name: u64,
        annotations: Annotations,
    },
    /// End of a section before the window.
    End {
        origin: Origin,
    },
    Send {
        origin: Origin,
        handle: Handle,
    },
    Receive {
        origin: Origin,
        handle: Handle,
    },
    /// Events that only hand-overs are made of.
    HandOver {
        event: HandOverEvent,
        at: Moment,
    },
    Create {
        by: u32,
        child: u32,
    },
    Exit {
        tid: u32,
    },
}

/// Attributes of a begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Annotations {
    pub(super) iteration: Option<u64>,
    pub(super) account: Option<u32>,
    pub(super) handle: Option<Handle>,
    pub(super) group: Option<u32>,
    /// Whether it begins an iteration.
    pub(super) is_root: bool,
    /// Whether it closes the section that is open, and takes its place.
    pub(super) is_switch: bool,
}

/// Returns the offset of an instant's name in its payload; `None` for other marks.
pub(crate) fn instant_name_at(payload: &[u8]) -> Option<u16> {
    let is_instant = mark::kind(payload) == Some(Kind::Instant);
    is_instant.then(|| payload.iter().skip(2).position(|&byte| byte == b'|').map_or(0, |at| at + 3) as u16)
}
