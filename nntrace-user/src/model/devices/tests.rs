use std::collections::BTreeMap;

use nntrace_common::layer::{Layer, Phase};
use proptest::prelude::*;

use super::{
    event::{Fence, JobName, RingName},
    *,
};

const CONTEXTS_OF_OTHERS: u64 = 100;

fn ring(number: u32) -> RingName<'static> {
    RingName { device: b"npu", ring: [b"a" as &[u8], b"b", b"c"][number as usize] }
}

fn by(pid: u32) -> Submitter {
    Submitter {
        pid,
        tid: pid,
        section: Some((Tag::new(Layer::Driver, Phase::Execution), u64::from(pid % 2))),
    }
}

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

/// Returns whether the times of each ring and its sections add up.
fn adds_up(sums: &Sums) {
    for (number, ring) in (0..).zip(&sums.rings) {
        let of_ring = sums.processes.iter().filter(|((of, _), _)| *of == number);
        let running: u64 = of_ring.map(|(_, row)| row.running_ns).sum();
        assert_eq!(ring.busy_ns, running + ring.lost_ns, "{sums:?}");
    }
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

/// Takes events of ring `a` in one context, at their times.
fn devices_of(events: &[(u64, DeviceEvent<'static>)]) -> Devices {
    let mut devices = Devices::default();
    for (time, event) in events {
        devices.take(event, *time, by(7), b"camera", |_| "run".into());
    }
    devices
}

fn job(seqno: u64) -> JobName<'static> {
    JobName { ring: ring(0), fence: Fence::Number { context: 5, seqno }, id: None }
}

#[test]
fn jobs_of_a_context_end_in_their_order() {
    let devices = devices_of(&[
        (0, DeviceEvent::Queued(job(1))),
        (0, DeviceEvent::Queued(job(2))),
        (10, DeviceEvent::HandedOver(job(1))),
        (20, DeviceEvent::HandedOver(job(2))),
        // The end of the first one is missing.
        (50, DeviceEvent::Done(job(2).fence)),
    ]);
    let sums = devices.sums_until(100);
    let [ring] = &sums.rings[..] else { panic!("{sums:?}") };
    assert_eq!((ring.busy_ns, ring.lost, ring.lost_ns, ring.out_of_order), (40, 1, 40, 0));
    assert_eq!(sums.processes[&(0, Some(7))].jobs, 1);
}

#[test]
fn a_job_that_a_loss_may_have_ended_gives_way_to_a_later_one() {
    let other = |seqno| JobName { fence: Fence::Number { context: 6, seqno }, ..job(0) };
    let begin = [
        (0, DeviceEvent::Queued(job(1))),
        (0, DeviceEvent::HandedOver(job(1))),
        (10, DeviceEvent::Queued(other(1))),
        (10, DeviceEvent::HandedOver(other(1))),
    ];
    let mut devices = devices_of(&begin);
    devices.lost(20);
    devices.take(&DeviceEvent::Done(other(1).fence), 30, by(7), b"", |_| String::new());
    let sums = devices.sums_until(100);
    assert_eq!((sums.rings[0].busy_ns, sums.rings[0].lost, sums.rings[0].out_of_order), (30, 1, 0));
    // Without a loss, the device has both at once.
    let mut devices = devices_of(&begin);
    devices.take(&DeviceEvent::Done(other(1).fence), 30, by(7), b"", |_| String::new());
    let sums = devices.sums_until(100);
    assert_eq!((sums.rings[0].busy_ns, sums.rings[0].lost, sums.rings[0].out_of_order), (100, 0, 1));
}

#[test]
fn a_job_that_was_queued_before_the_trace_has_no_process() {
    let devices = devices_of(&[
        (10, DeviceEvent::HandedOver(job(1))),
        (20, DeviceEvent::Done(job(1).fence)),
        (25, DeviceEvent::Done(Fence::Address(1))),
    ]);
    let sums = devices.sums_until(100);
    assert_eq!(sums.processes[&(0, None)].running_ns, 10);
    assert_eq!(sums.processes[&(0, None)].latency.times.count(), 0);
    assert_eq!(devices.unmatched(), 1);
    assert!(sums.sections.is_empty());
}

#[test]
fn names_are_those_of_main_threads_where_they_queue() {
    let mut devices = Devices::default();
    let mut queue = |seqno, tid, comm: &[u8]| {
        let submitter = Submitter { tid, ..by(7) };
        devices.take(&DeviceEvent::Queued(job(seqno)), seqno, submitter, comm, |_| "run".into());
    };
    queue(1, 8, b"<...>");
    queue(2, 9, b"worker");
    queue(3, 7, b"camera");
    queue(4, 9, b"other");
    assert_eq!(devices.comm(7), "camera");
    assert_eq!(devices.section_name(1), "run");
}

#[test]
fn tables_are_bounded() {
    let mut devices = Devices::default();
    for number in 0..70_000_u64 {
        let name = format!("ring {number}");
        let ring = RingName { device: b"", ring: if number < 2_000 { name.as_bytes() } else { b"ring 0" } };
        let fence = Fence::Address(number);
        let submitter = by(number as u32);
        devices.take(
            &DeviceEvent::Queued(JobName { ring, fence, id: Some(number) }),
            number,
            submitter,
            b"p",
            |_| "run".into(),
        );
        devices.take(
            &DeviceEvent::Depends { job: fence, on: Fence::Address(1 << 40) },
            number,
            submitter,
            b"",
            |_| String::new(),
        );
    }
    // Of 2,000 rings.
    assert_eq!(devices.rings().len(), 1_024);
    let jobs: u64 = devices.sums_until(70_000).processes.values().map(|row| row.open).sum();
    assert_eq!(jobs, 1 << 16);
    assert!(devices.left_out() > 976 + (69_024 - (1 << 16)));
}

#[test]
fn a_job_that_was_not_seen_to_be_handed_over_is_not_canceled() {
    let sums = |event| devices_of(&[(0, DeviceEvent::Queued(job(1))), (10, event)]).sums_until(20);
    let done = sums(DeviceEvent::Done(job(1).fence));
    assert_eq!((done.rings[0].lost, done.rings[0].busy_ns), (1, 0));
    assert!(done.processes.is_empty());
    let killed = sums(DeviceEvent::Signaled(job(1).fence));
    assert_eq!(
        (killed.processes[&(0, Some(7))].canceled, killed.processes[&(0, Some(7))].waiting_ns),
        (1, 10)
    );
}

#[test]
fn what_ended_before_the_window_is_not_out_of_order() {
    let other = |seqno| JobName { fence: Fence::Number { context: 6, seqno }, ..job(0) };
    let mut devices = Devices::default().since(50);
    for (time, event) in [
        (0, DeviceEvent::HandedOver(job(1))),
        (0, DeviceEvent::HandedOver(other(1))),
        (10, DeviceEvent::Done(other(1).fence)),
        (20, DeviceEvent::Done(job(1).fence)),
    ] {
        devices.take(&event, time, by(7), b"", |_| String::new());
    }
    assert_eq!(devices.sums_until(100).rings[0].out_of_order, 0);
}

#[test]
fn many_processes_on_a_ring_do_not_wait_for_themselves() {
    let mut devices = Devices::default();
    let mut now = 0;
    for pid in 1..3_000 {
        for seqno in [1, 2] {
            let name = JobName { fence: Fence::Number { context: pid, seqno }, ..job(0) };
            devices.take(&DeviceEvent::Queued(name), now, by(pid as u32), b"", |_| String::new());
            devices.take(&DeviceEvent::HandedOver(name), now, by(9), b"", |_| String::new());
        }
        for seqno in [1, 2] {
            now += 10;
            let fence = Fence::Number { context: pid, seqno };
            devices.take(&DeviceEvent::Done(fence), now, by(9), b"", |_| String::new());
        }
    }
    let sums = devices.sums_until(now);
    assert!(sums.processes.values().all(|row| row.behind_others_ns == 0 && row.waiting_ns == 10));
}
