//! Single jobs, for lanes.

use super::job::Job;

/// Jobs that are kept at least, and half of those that are kept at most.
const MOST: usize = 20_000;

/// Jobs that have ended, the longest ones where there are too many.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobList {
    jobs: Vec<Job>,
    left_out: u64,
}

impl JobList {
    /// Adds a job.
    pub(super) fn add(&mut self, job: &Job) {
        self.jobs.push(*job);
        if self.jobs.len() >= 2 * MOST {
            self.jobs.select_nth_unstable_by_key(MOST, |job| (u64::MAX - job.running_ns(), job.ended));
            self.left_out += (self.jobs.len() - MOST) as u64;
            self.jobs.truncate(MOST);
        }
    }

    /// Returns the jobs in the order of their rings and ends, and the number of those that are not kept.
    #[must_use]
    pub(super) fn sorted(mut self) -> (Vec<Job>, u64) {
        self.jobs.sort_by_key(|job| (job.ring, job.ended, job.started));
        (self.jobs, self.left_out)
    }
}
