//! Every job of a run, for analyses of single executions.

use super::{
    event::DeviceEvent,
    job::{Job, Submitter},
    jobs::Jobs,
    ring::Ring,
};

/// Jobs that have ended, in the order of their ends, and those that have not.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceJobs {
    open: Jobs,
    ended: Vec<Job>,
}

impl DeviceJobs {
    /// Takes an event at its time (ns) by a thread.
    pub(crate) fn take(&mut self, event: &DeviceEvent<'_>, time: u64, submitter: Submitter) {
        let Self { open, ended } = self;
        open.take(event, time, submitter, |job| ended.push(*job));
    }

    /// Events were lost by this time (ns).
    pub(crate) fn lost(&mut self, time: u64) {
        self.open.lost(time);
    }

    /// Returns all jobs; those that have not ended end with the window (ns).
    #[must_use]
    pub(crate) fn jobs_until(&self, end: u64) -> Vec<Job> {
        self.ended.iter().copied().chain(self.open.open_until(end)).collect()
    }

    /// Returns the names of the rings with those of their devices, in the order of their numbers.
    #[must_use]
    pub(crate) fn ring_names(&self) -> Vec<String> {
        self.open.rings().iter().map(Ring::full_name).collect()
    }
}
