//! Events that only hand-overs are made of, in order of time with the marks of sections.

use nntrace_common::track::TrackMark;

use super::{BinderEvent, HandOvers, hand_over::Moment};
use crate::model::{causality::Origin, tracks};

/// Event of a thread.
#[derive(Clone, Debug)]
pub(crate) enum HandOverEvent {
    /// A gate opens for work that was taken.
    Gate,
    /// An asynchronous slice with this name begins.
    SliceBegins {
        /// Value that distinguishes slices.
        slice: u64,
        /// Name.
        name: Box<[u8]>,
    },
    /// An asynchronous slice ends.
    SliceEnds {
        /// Value that distinguishes slices.
        slice: u64,
    },
    /// The binder driver sends or receives a transaction.
    Binder(BinderEvent),
}

impl HandOverEvent {
    /// Returns the event of a mark; `None` for one that is neither begin nor end of an asynchronous slice.
    pub(crate) fn of_mark(origin: Origin, mark: &TrackMark<'_>) -> Option<Self> {
        match *mark {
            TrackMark::SliceBegin { track, name, cookie } => Some(Self::SliceBegins {
                slice: tracks::slice(origin.pid, track, name, cookie),
                name: name.into(),
            }),
            TrackMark::SliceEnd { track, name, cookie } => {
                Some(Self::SliceEnds { slice: tracks::slice(origin.pid, track, name, cookie) })
            }
            TrackMark::Counter { .. } | TrackMark::Instant { .. } => None,
        }
    }
}

impl HandOvers {
    /// Takes an event of a thread.
    pub(in crate::model::causality) fn event(&mut self, event: &HandOverEvent, at: Moment) {
        match event {
            HandOverEvent::Gate => self.gate(at.tid, at.stamp()),
            HandOverEvent::SliceBegins { slice, name } => self.slice_begins(*slice, name, at),
            HandOverEvent::SliceEnds { slice } => self.slice_ends(*slice, at),
            HandOverEvent::Binder(transaction) => self.binder(*transaction, at),
        }
    }
}
