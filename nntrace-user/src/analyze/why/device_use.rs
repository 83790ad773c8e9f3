//! Use of devices while a thread slept: whether one ran a job of its process, or let it wait for those of others.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::cpu_use::{Stretch, claim};
use crate::model::devices::job::Job;

/// Activity of a device for a process that has a job there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceWait {
    /// The ring with this number ran a job of it.
    Running(u32),
    /// The ring ran jobs of another process, which may not be known.
    Busy {
        /// Number of the ring.
        ring: u32,
        /// Process.
        pid: Option<u32>,
    },
    /// A job could have run on the ring and did not.
    Queued(u32),
    /// A job for the ring depended on a fence.
    Blocked(u32),
}

/// Jobs of all processes over time.
#[derive(Default)]
pub(super) struct DeviceUse(FxHashMap<u32, Process>);

/// Jobs of a process over time.
#[derive(Default)]
struct Process {
    rings: BTreeMap<u32, OnRing>,
    /// Ends of its jobs, ns.
    ends: Vec<u64>,
}

/// Times in which a process had a job on a ring, each kind without overlaps.
#[derive(Default)]
struct OnRing {
    running: Vec<Stretch<()>>,
    /// Waits while the ring ran jobs of others.
    busy: Vec<Stretch<Option<u32>>>,
    waiting: Vec<Stretch<()>>,
    blocked: Vec<Stretch<()>>,
}

impl DeviceUse {
    /// Takes all jobs of a run.
    pub(super) fn new(jobs: &[Job]) -> Self {
        let mut all = Self::default();
        // Jobs that rings ran, with their processes.
        let mut ran: BTreeMap<u32, Vec<Stretch<Option<u32>>>> = BTreeMap::new();
        for job in jobs {
            let pid = job.submitter.map(|submitter| submitter.pid);
            if let Some(started) = job.started {
                ran.entry(job.ring).or_default().push((started, job.ended, pid));
            }
            let Some(pid) = pid else { continue };
            let process = all.0.entry(pid).or_default();
            process.ends.push(job.ended);
            let on_ring = process.rings.entry(job.ring).or_default();
            if let Some(started) = job.started {
                on_ring.running.push((started, job.ended, ()));
            }
            on_ring.waiting.push((job.ready, job.started.unwrap_or(job.ended), ()));
            if let Some(queued) = job.queued {
                on_ring.blocked.push((queued, job.ready, ()));
            }
        }
        for ran in ran.values_mut() {
            ran.sort_unstable();
        }
        for (pid, process) in &mut all.0 {
            process.ends.sort_unstable();
            for (ring, on_ring) in &mut process.rings {
                on_ring.running.sort_unstable();
                for stretches in [&mut on_ring.waiting, &mut on_ring.blocked] {
                    *stretches = merged(std::mem::take(stretches));
                }
                let others = ran.get(ring).map_or(&[][..], |ran| ran);
                on_ring.busy = within(&on_ring.waiting, others, |other| other != Some(*pid));
            }
        }
        all
    }

    /// Whether a job of a process ended between two times, ns: who slept then may have waited for it.
    pub(super) fn has_ended(&self, pid: u32, (begin, end): (u64, u64)) -> bool {
        let Some(process) = self.0.get(&pid) else { return false };
        let after = process.ends.partition_point(|ended| *ended <= begin);
        process.ends.get(after).is_some_and(|ended| *ended <= end)
    }

    /// Shows what devices did for a process in a time, ns; the rest of the time is `None`.
    pub(super) fn visit(
        &self,
        pid: u32,
        (begin, end): (u64, u64),
        take: &mut dyn FnMut(Option<DeviceWait>, u64),
    ) {
        let mut left = vec![(begin, end)];
        let mut sums: BTreeMap<DeviceWait, u64> = BTreeMap::new();
        let mut add = |wait, ns: u64| {
            *sums.entry(wait).or_default() += ns;
            true
        };
        if let Some(process) = self.0.get(&pid) {
            for (ring, of) in &process.rings {
                claim(&mut left, &of.running, |(), ns| add(DeviceWait::Running(*ring), ns));
            }
            for (ring, of) in &process.rings {
                claim(&mut left, &of.busy, |pid, ns| add(DeviceWait::Busy { ring: *ring, pid }, ns));
            }
            for (ring, of) in &process.rings {
                claim(&mut left, &of.waiting, |(), ns| add(DeviceWait::Queued(*ring), ns));
            }
            for (ring, of) in &process.rings {
                claim(&mut left, &of.blocked, |(), ns| add(DeviceWait::Blocked(*ring), ns));
            }
        }
        sums.into_iter().filter(|(_, ns)| *ns > 0).for_each(|(wait, ns)| take(Some(wait), ns));
        let rest: u64 = left.into_iter().map(|(from, to)| to - from).sum();
        if rest > 0 {
            take(None, rest);
        }
    }
}

/// Returns the times that any of these cover.
fn merged(mut stretches: Vec<Stretch<()>>) -> Vec<Stretch<()>> {
    stretches.sort_unstable();
    let mut all: Vec<Stretch<()>> = Vec::new();
    for (begin, end, ()) in stretches.into_iter().filter(|(begin, end, ())| begin < end) {
        match all.last_mut() {
            Some((_, until, ())) if begin <= *until => *until = end.max(*until),
            _ => all.push((begin, end, ())),
        }
    }
    all
}

/// Returns the parts of some stretches that are in others; both without overlaps, and in order.
fn within<T: Copy>(
    outer: &[Stretch<()>],
    inner: &[Stretch<T>],
    is_taken: impl Fn(T) -> bool,
) -> Vec<Stretch<T>> {
    let mut parts = Vec::new();
    let mut first = 0;
    for &(begin, end, ()) in outer {
        while inner.get(first).is_some_and(|(_, until, _)| *until <= begin) {
            first += 1;
        }
        for &(from, to, what) in inner[first..].iter().take_while(|(from, ..)| *from < end) {
            let (from, to) = (from.max(begin), to.min(end));
            if from < to && is_taken(what) {
                parts.push((from, to, what));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::devices::job::{End, Submitter};

    /// Job of a process: queued, ready, started, ended.
    fn job(pid: Option<u32>, ring: u32, times: [u64; 4]) -> Job {
        let [queued, ready, started, ended] = times;
        Job {
            ring,
            submitter: pid.map(|pid| Submitter { pid, tid: pid, section: None }),
            queued: Some(queued),
            is_whole: true,
            ready,
            started: Some(started),
            ended,
            behind_others: 0,
            end: End::Done,
        }
    }

    #[test]
    fn sleep_is_divided_by_what_devices_did() {
        let jobs = [
            job(Some(20), 0, [0, 0, 0, 30]),
            job(None, 0, [0, 0, 30, 35]),
            job(Some(7), 0, [10, 20, 40, 50]),
            // A second job runs at once with the first one's wait, on another ring.
            job(Some(7), 1, [24, 24, 24, 26]),
            job(Some(7), 0, [45, 45, 50, 60]),
        ];
        let all = DeviceUse::new(&jobs);
        let seen = |pid, times| {
            let mut seen = Vec::new();
            all.visit(pid, times, &mut |what, ns| seen.push((what, ns)));
            seen
        };
        assert_eq!(
            seen(7, (5, 70)),
            [
                (Some(DeviceWait::Running(0)), 20),
                (Some(DeviceWait::Running(1)), 2),
                (Some(DeviceWait::Busy { ring: 0, pid: None }), 5),
                (Some(DeviceWait::Busy { ring: 0, pid: Some(20) }), 8),
                (Some(DeviceWait::Queued(0)), 5),
                (Some(DeviceWait::Blocked(0)), 10),
                (None, 15),
            ]
        );
        assert_eq!(seen(9, (5, 70)), [(None, 65)]);
        assert!(all.has_ended(7, (49, 50)) && !all.has_ended(7, (50, 59)) && !all.has_ended(9, (0, 99)));
    }
}
