//! Device activity while a thread slept that had queued a job: whether the device ran it, or let it wait for others.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::cpu_use::{Stretch, claim};
use crate::model::devices::job::{End, Job};

/// Activity of a device for a thread that has queued a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceWait {
    /// The ring with this number ran its job.
    Running(u32),
    /// The ring ran jobs of another process, which may not be known.
    Busy {
        /// Number of the ring.
        ring: u32,
        /// Process.
        pid: Option<u32>,
    },
    /// The ring ran jobs of other threads of its process.
    Own(u32),
    /// Its job could have run on the ring and did not.
    Idle(u32),
    /// Its job for the ring was blocked on a fence.
    Blocked(u32),
}

/// Time from the end of a job within which its thread is woken for it, ns.
const WOKEN_WITHIN: u64 = 1_000_000;

/// Jobs of all threads over time.
#[derive(Default)]
pub(super) struct DeviceActivity(FxHashMap<u32, OfThread>);

/// Jobs that a thread queued over time.
#[derive(Default)]
struct OfThread {
    rings: BTreeMap<u32, OnRing>,
    /// When the device was done with each, ns.
    ends: Vec<u64>,
    pid: Option<u32>,
}

/// Disjoint intervals of each kind for a thread on a ring.
#[derive(Default)]
struct OnRing {
    running: Vec<Stretch<()>>,
    /// Waits while the ring ran jobs, by their process.
    busy: Vec<Stretch<Option<u32>>>,
    waiting: Vec<Stretch<()>>,
    blocked: Vec<Stretch<()>>,
}

impl DeviceActivity {
    /// Takes all jobs of a run.
    pub(super) fn new(jobs: &[Job]) -> Self {
        let mut all = Self::default();
        // Jobs that rings ran, with their processes.
        let mut ran: BTreeMap<u32, Vec<Stretch<Option<u32>>>> = BTreeMap::new();
        // Of a job that was not handed over when the run ended it is not known whether that was canceled.
        for job in jobs.iter().filter(|job| job.end != End::Open || job.started.is_some()) {
            let pid = job.submitter.map(|submitter| submitter.pid);
            let tid = job.submitter.map(|submitter| submitter.tid);
            if let Some(started) = job.started {
                ran.entry(job.ring).or_default().push((started, job.ended, pid));
            }
            let Some(tid) = tid.filter(|_| job.end != End::Lost) else { continue };
            let of_thread = all.0.entry(tid).or_default();
            if job.end == End::Done {
                of_thread.ends.push(job.ended);
            }
            of_thread.pid = pid;
            let on_ring = of_thread.rings.entry(job.ring).or_default();
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
        for of_thread in all.0.values_mut() {
            of_thread.ends.sort_unstable();
            for (ring, on_ring) in &mut of_thread.rings {
                on_ring.running.sort_unstable();
                for stretches in [&mut on_ring.waiting, &mut on_ring.blocked] {
                    *stretches = merged(std::mem::take(stretches));
                }
                let others = ran.get(ring).map_or(&[][..], |ran| ran);
                on_ring.busy = within(&on_ring.waiting, others);
            }
        }
        all
    }

    /// Whether a thread that slept between two times (ns) was woken when the device was done with a job of it.
    pub(super) fn has_woken(&self, tid: u32, (begin, end): (u64, u64)) -> bool {
        let Some(of_thread) = self.0.get(&tid) else { return false };
        let after = of_thread.ends.partition_point(|ended| *ended <= end);
        let last = after.checked_sub(1).map(|last| of_thread.ends[last]);
        last.is_some_and(|ended| ended > begin && end - ended <= WOKEN_WITHIN)
    }

    /// Splits an interval (ns) by device activity for a thread; `None` is the remainder.
    pub(super) fn visit(
        &self,
        tid: u32,
        (begin, end): (u64, u64),
        take: &mut dyn FnMut(Option<DeviceWait>, u64),
    ) {
        let mut left = vec![(begin, end)];
        let mut sums: BTreeMap<DeviceWait, u64> = BTreeMap::new();
        let mut add = |wait, ns: u64| {
            *sums.entry(wait).or_default() += ns;
            true
        };
        if let Some(of_thread) = self.0.get(&tid) {
            for (ring, of) in &of_thread.rings {
                claim(&mut left, &of.running, |(), ns| add(DeviceWait::Running(*ring), ns));
            }
            for (ring, of) in &of_thread.rings {
                let ring = *ring;
                let of_process = |pid: Option<u32>| pid.is_some() && pid == of_thread.pid;
                claim(&mut left, &of.busy, |pid, ns| {
                    add(
                        if of_process(pid) { DeviceWait::Own(ring) } else { DeviceWait::Busy { ring, pid } },
                        ns,
                    )
                });
            }
            for (ring, of) in &of_thread.rings {
                claim(&mut left, &of.waiting, |(), ns| add(DeviceWait::Idle(*ring), ns));
            }
            for (ring, of) in &of_thread.rings {
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
fn within<T: Copy>(outer: &[Stretch<()>], inner: &[Stretch<T>]) -> Vec<Stretch<T>> {
    let mut parts = Vec::new();
    for &(begin, end, ()) in outer {
        let first = inner.partition_point(|(_, until, _)| *until <= begin);
        for &(from, to, what) in inner[first..].iter().take_while(|(from, ..)| *from < end) {
            let (from, to) = (from.max(begin), to.min(end));
            if from < to {
                parts.push((from, to, what));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::devices::job::Submitter;

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
        let all = DeviceActivity::new(&jobs);
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
                (Some(DeviceWait::Idle(0)), 5),
                (Some(DeviceWait::Blocked(0)), 10),
                (None, 15),
            ]
        );
        assert_eq!(seen(9, (5, 70)), [(None, 65)]);
        assert!(
            all.has_woken(7, (49, 50))
                && all.has_woken(7, (49, 59))
                && all.has_woken(7, (55, 60 + WOKEN_WITHIN))
        );
        assert!(
            !all.has_woken(7, (50, 59))
                && !all.has_woken(7, (55, 61 + WOKEN_WITHIN))
                && !all.has_woken(9, (0, 99))
        );
    }
}
