//! Job of a device that has not ended.

use super::{
    event::Fence,
    job::{End, Job, Submitter},
    ring::Ring,
};

/// Job that has not ended.
#[derive(Clone, Debug)]
pub(super) struct OpenJob {
    pub(super) serial: u64,
    pub(super) ring: u32,
    pub(super) id: Option<u64>,
    pub(super) submitter: Option<Submitter>,
    pub(super) queued: Option<u64>,
    pub(super) is_whole: bool,
    pub(super) ready: u64,
    /// Time in which jobs of other processes had run on the ring by then, ns.
    pub(super) others_before: u64,
    /// Fence that it was seen to wait for.
    pub(super) blocked_by: Option<Fence>,
    /// Fences that it depends on, which may be signaled already.
    pub(super) depends_on: Vec<Fence>,
    pub(super) handed_over: Option<u64>,
    /// Part of its wait in which jobs of other processes ran, once it is known, ns.
    pub(super) behind_others: Option<u64>,
}

impl OpenJob {
    pub(super) fn process(&self) -> Option<u32> {
        self.submitter.map(|submitter| submitter.pid)
    }

    /// Becomes the first job of its ring that has not ended.
    pub(super) fn begin(&mut self, ring: &mut Ring, now: u64) {
        self.behind_others = Some(self.behind_others_until(ring, now));
        ring.begin(self.process(), now);
    }

    fn behind_others_until(&self, ring: &Ring, now: u64) -> u64 {
        ring.busy_of_others(self.process(), now).saturating_sub(self.others_before)
    }

    pub(super) fn ended(&self, ring: &Ring, started: Option<u64>, now: u64, end: End) -> Job {
        // What it waits for has not been signaled yet.
        let is_blocked = self.blocked_by.is_some();
        let behind_others = match self.behind_others {
            Some(known) => known,
            None if is_blocked => 0,
            None => self.behind_others_until(ring, now),
        };
        Job {
            ring: self.ring,
            submitter: self.submitter,
            queued: self.queued,
            is_whole: self.is_whole,
            ready: if is_blocked { now } else { self.ready },
            started,
            ended: now,
            behind_others,
            end,
        }
    }
}
