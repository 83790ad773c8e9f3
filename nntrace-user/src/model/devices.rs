//! Jobs of accelerators and GPUs: which device and ring ran them, how long they waited and ran, and who queued them.
//!
//! The time of a job is split exactly: blocked on fences, waiting for its ring, running. The running times of a ring's jobs add
//! up to the time in which it had a job.

pub(crate) mod event;
mod every_job;
pub(crate) mod job;
mod job_list;
mod jobs;
mod open_job;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nntrace_common::layer::Tag;
use rustc_hash::FxHashMap;

use self::{
    event::DeviceEvent,
    job::{End, Job, Submitter},
    job_list::JobList,
    jobs::Jobs,
    ring::Ring,
};
pub(crate) use self::{every_job::DeviceJobs, ring::full_name};
use super::{
    capped_table::{OTHERS, OTHERS_PID},
    histogram::Durations,
};

/// Rows of processes at most, and as many of sections.
const MOST_ROWS: usize = 4_096;

/// All devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    jobs: Jobs,
    sums: Sums,
    list: JobList,
    /// Names of processes, with the thread that each is from: the main one, or the first that queued.
    comms: FxHashMap<u32, (u32, Box<str>)>,
    /// Names of sections that queued, by their hash: the model may forget them before a job ends.
    names: FxHashMap<u64, Box<str>>,
    /// Jobs whose process or section has no row of its own.
    beyond: u64,
}

/// Sums of all devices until the end of the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// By the number of the ring.
    pub(crate) rings: Vec<RingSums>,
    /// By the number of the ring and the process that queued, which may not be known.
    pub(crate) processes: BTreeMap<(u32, Option<u32>), ProcessSums>,
    /// By the number of the ring, the process, and the section that queued.
    pub(crate) sections: BTreeMap<(u32, u32, Tag, u64), SectionSums>,
}

/// Sums of a ring. Times are ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct RingSums {
    /// Time with a job of the device.
    pub(crate) busy_ns: u64,
    /// Jobs with a missing event, and their part of the time.
    pub(crate) lost: u64,
    pub(crate) lost_ns: u64,
    /// Jobs that ended before an older one that ran.
    pub(crate) out_of_order: u64,
}

/// Sums of the jobs of a process on a ring. Times are ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessSums {
    /// Jobs that the device has done.
    pub(crate) jobs: u64,
    /// Jobs that ended before they were handed to the device.
    pub(crate) canceled: u64,
    /// Jobs that had not ended.
    pub(crate) open: u64,
    /// Time in which jobs depended on others.
    pub(crate) blocked_ns: u64,
    /// Time in which they could have run and did not.
    pub(crate) waiting_ns: u64,
    /// Part of it in which jobs of other processes ran.
    pub(crate) behind_others_ns: u64,
    /// Time in which they ran.
    pub(crate) running_ns: u64,
    /// Running times of the jobs that are known from their start to their end.
    pub(crate) running: Durations,
    /// Their times from when they were queued to their end.
    pub(crate) latency: Durations,
}

/// Sums of the jobs that a section queued. Times are ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SectionSums {
    /// Jobs that the device has done.
    pub(crate) jobs: u64,
    /// Time from when they were queued until they ran.
    pub(crate) waiting_ns: u64,
    /// Time in which they ran.
    pub(crate) running_ns: u64,
}

impl Devices {
    /// Returns the devices of a window that starts at `since` (ns).
    #[must_use]
    pub(crate) fn since(self, since: u64) -> Self {
        Self { jobs: self.jobs.since(since), ..self }
    }

    /// Returns single jobs until the end of the window (ns), in the order of their rings and ends, and the number of those that
    /// are not among them: the shortest, where there are too many.
    #[must_use]
    pub(crate) fn list_until(&self, end: u64) -> (Vec<Job>, u64) {
        let mut list = self.list.clone();
        self.jobs.open_until(end).iter().for_each(|job| list.add(job));
        list.sorted()
    }

    /// Whether nothing was seen of any device.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.rings().is_empty()
    }

    /// Returns how often there was no room for an event, a job or its row.
    #[must_use]
    pub(crate) fn left_out(&self) -> u64 {
        self.jobs.left_out + self.beyond
    }

    /// Returns the number of jobs with an end event only.
    #[must_use]
    pub(crate) fn unmatched(&self) -> u64 {
        self.jobs.unmatched
    }

    /// Takes an event at its time (ns) by a thread of this name. `text` returns the name of a section.
    pub(crate) fn take(
        &mut self,
        event: &DeviceEvent<'_>,
        time: u64,
        submitter: Submitter,
        comm: &[u8],
        text: impl Fn(u64) -> String,
    ) {
        if matches!(event, DeviceEvent::Queued(_)) {
            self.name(submitter, comm, text);
        }
        let Self { jobs, sums, list, beyond, .. } = self;
        jobs.take(event, time, submitter, |job| {
            *beyond += u64::from(!sums.add(job));
            list.add(job);
        });
    }

    /// Notes the names of a thread's process and of its section.
    fn name(
        &mut self,
        Submitter { pid, tid, section }: Submitter,
        comm: &[u8],
        text: impl Fn(u64) -> String,
    ) {
        let is_better = match self.comms.get(&pid) {
            Some((known, _)) => tid == pid && *known != pid,
            None => self.comms.len() < MOST_ROWS,
        };
        // A name that the tracer did not know is `<...>`.
        if is_better && !matches!(comm, b"" | b"<...>") {
            self.comms.insert(pid, (tid, String::from_utf8_lossy(comm).into()));
        }
        if let Some((_, name)) = section
            && self.names.len() < MOST_ROWS
        {
            self.names.entry(name).or_insert_with(|| text(name).into());
        }
    }

    /// Returns the name of a process; empty where it is not known.
    #[must_use]
    pub(crate) fn comm(&self, pid: u32) -> &str {
        let others = if pid == OTHERS_PID { OTHERS } else { "" };
        self.comms.get(&pid).map_or(others, |(_, comm)| comm)
    }

    /// Returns the name of a section that queued.
    #[must_use]
    pub(crate) fn section_name(&self, name: u64) -> &str {
        self.names.get(&name).map_or("", |name| name)
    }

    /// Returns the rings, by number, with the names of their devices.
    pub(crate) fn rings(&self) -> &[Ring] {
        self.jobs.rings()
    }

    /// Events were lost by this time (ns).
    pub(crate) fn lost(&mut self, time: u64) {
        self.jobs.lost(time);
    }

    /// Returns the sums until the end of the window (ns).
    #[must_use]
    pub(crate) fn sums_until(&self, end: u64) -> Sums {
        let mut sums = self.sums.clone();
        for job in self.jobs.open_until(end) {
            sums.add(&job);
        }
        sums.rings.resize_with(self.jobs.rings().len(), RingSums::default);
        for ((number, ring), row) in (0..).zip(self.jobs.rings()).zip(&mut sums.rings) {
            row.busy_ns = self.jobs.busy_until(number, end);
            row.out_of_order = ring.out_of_order;
        }
        sums
    }
}

impl Sums {
    /// Adds a job; returns whether its process and section have rows of their own.
    fn add(&mut self, job: &Job) -> bool {
        let running = job.running_ns();
        if job.end == End::Lost {
            let at = job.ring as usize;
            if self.rings.len() <= at {
                self.rings.resize_with(at + 1, RingSums::default);
            }
            self.rings[at].lost += 1;
            self.rings[at].lost_ns += running;
            return true;
        }
        let done = u64::from(job.end == End::Done);
        let waiting = job.started.unwrap_or(job.ended).saturating_sub(job.ready);
        let blocked = job.queued.map_or(0, |queued| job.ready.saturating_sub(queued));
        let pid = job.submitter.map(|submitter| submitter.pid);
        let has_room = self.processes.len() < MOST_ROWS || self.processes.contains_key(&(job.ring, pid));
        let row =
            self.processes.entry((job.ring, if has_room { pid } else { Some(OTHERS_PID) })).or_default();
        row.jobs += done;
        row.canceled += u64::from(job.end == End::Canceled);
        row.open += u64::from(job.end == End::Open);
        row.blocked_ns += blocked;
        row.waiting_ns += waiting;
        row.behind_others_ns += job.behind_others.min(waiting);
        row.running_ns += running;
        if job.is_whole && job.end == End::Done {
            row.running.record(running);
            row.latency.record(job.ended.saturating_sub(job.queued.unwrap_or(job.ended)));
        }
        let Some(Submitter { pid, section: Some((tag, name)), .. }) = job.submitter else { return has_room };
        let key = (job.ring, pid, tag, name);
        if self.sections.len() >= MOST_ROWS && !self.sections.contains_key(&key) {
            return false;
        }
        let row = self.sections.entry(key).or_default();
        row.jobs += done;
        row.waiting_ns += blocked + waiting;
        row.running_ns += running;
        has_room
    }
}
