//! Hand-overs of work, one by one: who gave it, who took it, and when.

use nntrace_common::attributes::Handle;

use crate::model::limits::Limits;

/// Hand-overs that were taken, in the order in which they were.
#[derive(Clone, Debug)]
pub(crate) struct HandOverList {
    /// Those beyond are only counted; 0 where none is asked for.
    most: usize,
    all: Vec<HandOver>,
    /// Hand-overs beyond those that are kept.
    pub(crate) left_out: u64,
}

/// Hand-over that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandOver {
    /// Name of the work.
    pub(crate) handle: Handle,
    /// Where and when it was handed over.
    pub(crate) sent: Moment,
    /// Where and when it was taken.
    pub(crate) received: Moment,
    /// Number of the iteration that it was handed over in.
    pub(crate) iteration: Option<u32>,
}

/// Time on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Time, ns.
    pub(crate) time: u64,
}

impl HandOverList {
    /// Creates a list, which stays empty unless hand-overs are wanted.
    pub(super) fn new(wanted: bool, limits: &Limits) -> Self {
        Self { most: if wanted { limits.sections } else { 0 }, all: Vec::new(), left_out: 0 }
    }

    /// Returns the hand-overs.
    #[must_use]
    pub(crate) fn all(&self) -> &[HandOver] {
        &self.all
    }

    pub(super) fn add(&mut self, hand_over: HandOver) {
        if self.all.len() < self.most {
            self.all.push(hand_over);
        } else if self.most > 0 {
            self.left_out += 1;
        }
    }
}
