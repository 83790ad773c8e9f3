//! Random runs, against sums that are found by looking at every nanosecond.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const CONTEXTS_OF_OTHERS: u64 = 100;

/// A step of a made-up run: nanoseconds since the one before, and what happens then.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A process queues a job for a ring.
    Queue { ring: u32, process: u32 },
    /// One of the queued jobs is handed over.
    HandOver(usize),
    /// One of the jobs of the device is done; 0 is the oldest of its ring.
    Done { ring: u32, place: usize },
    /// One of the queued jobs ends without being handed over.
    Cancel(usize),
    /// One of the queued jobs depends on another one, or on a fence of somebody else.
    Depend { job: usize, on: usize, is_blocked: bool },
    /// A fence of somebody else is signaled.
    Signal(u64),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        6 => (0..3_u32, 1..4_u32).prop_map(|(ring, process)| Step::Queue { ring, process }),
        6 => any::<usize>().prop_map(Step::HandOver),
        6 => (0..3_u32, prop_oneof![9 => Just(0), 1 => any::<usize>()])
            .prop_map(|(ring, place)| Step::Done { ring, place }),
        1 => any::<usize>().prop_map(Step::Cancel),
        4 => (any::<usize>(), any::<usize>(), any::<bool>())
            .prop_map(|(job, on, is_blocked)| Step::Depend { job, on, is_blocked }),
        2 => (0..4_u64).prop_map(Step::Signal),
    ];
    prop::collection::vec((0..7_u64, step), 0..120)
}

/// Returns the fence of a job, in a context of its own: so jobs may end in any order.
fn fence_of(job: usize, has_addresses: bool) -> Fence {
    if has_addresses { Fence::Address(job as u64) } else { Fence::Number { context: job as u64, seqno: 1 } }
}

/// Job as it was made up.
#[derive(Clone, Debug)]
struct Truth {
    ring: u32,
    pid: u32,
    queued: u64,
    handed_over: Option<u64>,
    /// End, and whether the device was done.
    end: Option<(u64, bool)>,
    /// Number of the event by which it was no longer queued.
    left_queue: Option<usize>,
    /// Fences that it depends on, each with whether it was seen to wait for it.
    depends_on: Vec<(Fence, bool)>,
}

/// A made-up run: its events, and what they mean.
#[derive(Default)]
struct Run {
    now: u64,
    events: Vec<(u64, u32, DeviceEvent<'static>)>,
    jobs: Vec<Truth>,
    /// When each fence was signaled, and the number of that event.
    signals: Vec<(Fence, u64, usize)>,
    /// Jobs that are queued, and those of the device by ring, in their order.
    queued: Vec<usize>,
    running: [Vec<usize>; 3],
}

impl Run {
    /// A run of these steps. With addresses, jobs are known as before Linux 6.17.
    fn of(steps: &[(u64, Step)], has_addresses: bool) -> Self {
        let mut run = Self::default();
        for (later, step) in steps {
            run.now += later;
            run.step(*step, has_addresses);
        }
        run
    }

    fn event(&mut self, pid: u32, event: DeviceEvent<'static>) {
        self.events.push((self.now, pid, event));
    }

    fn step(&mut self, step: Step, has_addresses: bool) {
        let name = |run: &Self, job: usize| JobName {
            ring: ring(run.jobs[job].ring),
            fence: fence_of(job, has_addresses),
            id: has_addresses.then_some(job as u64),
        };
        match step {
            Step::Queue { ring, process } => {
                let job = self.jobs.len();
                self.jobs.push(Truth {
                    ring,
                    pid: process,
                    queued: self.now,
                    handed_over: None,
                    end: None,
                    left_queue: None,
                    depends_on: Vec::new(),
                });
                self.queued.push(job);
                self.event(process, DeviceEvent::Queued(name(self, job)));
            }
            Step::HandOver(place) if !self.queued.is_empty() => {
                let job = self.queued.remove(place % self.queued.len());
                self.jobs[job].handed_over = Some(self.now);
                self.jobs[job].left_queue = Some(self.events.len());
                self.running[self.jobs[job].ring as usize].push(job);
                self.event(99, DeviceEvent::HandedOver(name(self, job)));
            }
            Step::Done { ring, place } if !self.running[ring as usize].is_empty() => {
                let running = &mut self.running[ring as usize];
                let job = running.remove(place % running.len());
                self.jobs[job].end = Some((self.now, true));
                let fence = fence_of(job, has_addresses);
                self.signals.push((fence, self.now, self.events.len()));
                self.event(99, DeviceEvent::Done(fence));
            }
            Step::Cancel(place) if !self.queued.is_empty() => {
                let job = self.queued.remove(place % self.queued.len());
                self.jobs[job].end = Some((self.now, false));
                self.jobs[job].left_queue = Some(self.events.len());
                let fence = fence_of(job, has_addresses);
                self.signals.push((fence, self.now, self.events.len()));
                self.event(99, DeviceEvent::Signaled(fence));
            }
            Step::Depend { job, on, is_blocked } if !self.queued.is_empty() => {
                let job = self.queued[job % self.queued.len()];
                let fence = match on % 3 {
                    0 => Fence::Number { context: CONTEXTS_OF_OTHERS + on as u64 % 4, seqno: 1 },
                    _ => fence_of(on % self.jobs.len(), has_addresses),
                };
                if fence == fence_of(job, has_addresses) || self.is_signaled(fence) {
                    return;
                }
                self.jobs[job].depends_on.push((fence, is_blocked && !has_addresses));
                let (ring, job_fence) = (ring(self.jobs[job].ring), fence_of(job, has_addresses));
                let event = match (is_blocked, has_addresses) {
                    (false, _) => DeviceEvent::Depends { job: job_fence, on: fence },
                    (true, false) => DeviceEvent::Blocked { job: job_fence, on: fence },
                    (true, true) => {
                        let (address, number) = (Fence::Address(1 << 40), Some(fence));
                        DeviceEvent::DependsById { ring, id: job as u64, address, number }
                    }
                };
                self.event(99, event);
            }
            Step::Signal(which) => {
                let fence = Fence::Number { context: CONTEXTS_OF_OTHERS + which, seqno: 1 };
                if !self.is_signaled(fence) {
                    self.signals.push((fence, self.now, self.events.len()));
                    self.event(99, DeviceEvent::Signaled(fence));
                }
            }
            _ => {}
        }
    }

    fn is_signaled(&self, fence: Fence) -> bool {
        self.signals.iter().any(|(signaled, ..)| *signaled == fence)
    }

    fn devices(&self, since: u64) -> Devices {
        let mut devices = Devices::default().since(since);
        for (time, pid, event) in &self.events {
            devices.take(event, *time, by(*pid), format!("p{pid}").as_bytes(), |name| format!("s{name}"));
        }
        devices
    }

    /// Returns the oldest job of a ring that the device has at a time.
    fn oldest(&self, ring: u32, time: u64) -> Option<usize> {
        let of_ring = (0..self.jobs.len()).filter(|job| self.jobs[*job].ring == ring);
        let on_device = of_ring.filter(|job| {
            let job = &self.jobs[*job];
            job.handed_over.is_some_and(|at| at <= time) && job.end.is_none_or(|(end, _)| time < end)
        });
        let order = |job: &usize| {
            let is_it = |event: &DeviceEvent<'_>| matches!(event, DeviceEvent::HandedOver(name) if [Fence::Address(*job as u64), Fence::Number { context: *job as u64, seqno: 1 }].contains(&name.fence));
            self.events.iter().position(|(_, _, event)| is_it(event))
        };
        on_device.min_by_key(order)
    }

    /// Returns the sums, found by looking at every nanosecond.
    fn slowly(&self, since: u64, end: u64) -> BTreeMap<(u32, u32), [u64; 6]> {
        let mut sums: BTreeMap<(u32, u32), [u64; 6]> = BTreeMap::new();
        for (number, job) in self.jobs.iter().enumerate() {
            let last = job.handed_over.or(job.end.map(|(end, _)| end)).unwrap_or(end);
            // The last of its dependencies that was signaled while it was queued; or it was seen to wait for one that was not.
            let signaled = |fence: Fence| {
                let mut signals = self.signals.iter();
                let (_, at, number) = signals.find(|(of, ..)| *of == fence)?;
                job.left_queue.is_none_or(|left| *number <= left).then_some(*at)
            };
            let known = job.depends_on.iter().filter_map(|(fence, _)| signaled(*fence)).max();
            let blocked = job.depends_on.iter().rev().find(|(_, is_blocked)| *is_blocked);
            let is_blocked = blocked.is_some_and(|(fence, _)| signaled(*fence).is_none());
            let ready = if is_blocked { last } else { known.unwrap_or(job.queued) };
            let is_in_window = job.end.is_none_or(|(end, _)| end >= since);
            let row = sums.entry((job.ring, job.pid)).or_default();
            row[0] += u64::from(job.end.is_some_and(|(end, is_done)| is_done && end >= since));
            row[1] += u64::from(is_in_window && job.end.is_none_or(|(_, is_done)| !is_done));
            for time in since.max(job.queued)..job.end.map_or(end, |(end, _)| end) {
                let oldest = self.oldest(job.ring, time);
                if time < ready {
                    row[2] += 1;
                } else if oldest == Some(number) {
                    row[5] += 1;
                } else {
                    row[3] += 1;
                    row[4] += u64::from(oldest.is_some_and(|oldest| self.jobs[oldest].pid != job.pid));
                }
            }
        }
        sums.retain(|_, row| row.iter().any(|figure| *figure > 0));
        sums
    }
}

fn figures(sums: &Sums, devices: &Devices) -> BTreeMap<(u32, u32), [u64; 6]> {
    let number = |ring: u32| {
        let name = devices.rings()[ring as usize].name.as_bytes();
        (0..3).find(|number| ring_name(*number) == name).unwrap()
    };
    let rows = sums.processes.iter().map(|((ring, pid), row)| {
        let ended = [row.jobs, row.canceled + row.open];
        let times = [row.blocked_ns, row.waiting_ns, row.behind_others_ns, row.running_ns];
        ((number(*ring), pid.unwrap()), [ended[0], ended[1], times[0], times[1], times[2], times[3]])
    });
    rows.filter(|(_, row)| row.iter().any(|figure| *figure > 0)).collect()
}

fn ring_name(number: u32) -> &'static [u8] {
    ring(number).ring
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn times_are_those_of_every_nanosecond(steps in steps(), has_addresses: bool, since in 0..60_u64, more in 0..20_u64) {
        let run = Run::of(&steps, has_addresses);
        let end = run.now.max(since) + more;
        let devices = run.devices(since);
        let sums = devices.sums_until(end);
        prop_assert_eq!(figures(&sums, &devices), run.slowly(since, end));
        adds_up(&sums);
        prop_assert_eq!((devices.left_out(), devices.unmatched()), (0, 0));
        let sections: u64 = sums.sections.values().map(|row| row.running_ns).sum();
        let running: u64 = sums.processes.values().map(|row| row.running_ns).sum();
        prop_assert_eq!(sections, running);
        let (list, left_out) = devices.list_until(end);
        let done: u64 = sums.processes.values().map(|row| row.jobs).sum();
        let listed = list.iter().filter(|job| job.end == End::Done).count() as u64;
        prop_assert_eq!((listed, left_out), (done, 0));
    }

    #[test]
    fn events_that_are_lost_leave_no_time_twice(steps in steps(), kept in prop::collection::vec(0..4_u8, 120), has_addresses: bool) {
        let mut run = Run::of(&steps, has_addresses);
        let mut kept = kept.iter().cycle();
        run.events.retain(|_| *kept.next().unwrap() > 0);
        let mut devices = run.devices(0);
        devices.lost(run.now / 2);
        let sums = devices.sums_until(run.now + 5);
        adds_up(&sums);
        for ring in &sums.rings {
            prop_assert!(ring.busy_ns <= run.now + 5);
        }
    }
}
