mod random;

use nntrace_common::layer::{Layer, Phase};

use super::{
    event::{Fence, JobName, RingName},
    *,
};

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

/// Returns whether the times of each ring and its sections add up.
fn adds_up(sums: &Sums) {
    for (number, ring) in (0..).zip(&sums.rings) {
        let of_ring = sums.processes.iter().filter(|((of, _), _)| *of == number);
        let running: u64 = of_ring.map(|(_, row)| row.running_ns).sum();
        assert_eq!(ring.busy_ns, running + ring.lost_ns, "{sums:?}");
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

#[test]
fn a_missing_end_is_found_when_the_job_would_run() {
    let other = |seqno| JobName { fence: Fence::Number { context: 6, seqno }, ..job(0) };
    let devices = devices_of(&[
        (0, DeviceEvent::HandedOver(job(1))),
        (0, DeviceEvent::HandedOver(other(1))),
        (0, DeviceEvent::HandedOver(other(2))),
        // The end of the other context's first job is missing.
        (20, DeviceEvent::Done(other(2).fence)),
        (30, DeviceEvent::Done(job(1).fence)),
    ]);
    let sums = devices.sums_until(100);
    assert_eq!((sums.rings[0].busy_ns, sums.rings[0].lost, sums.rings[0].lost_ns), (30, 1, 0));
    adds_up(&sums);
}

#[test]
fn the_job_after_a_missing_end_has_no_times() {
    let devices = devices_of(&[
        (0, DeviceEvent::Queued(job(1))),
        (0, DeviceEvent::HandedOver(job(1))),
        (5, DeviceEvent::Queued(job(2))),
        (5, DeviceEvent::HandedOver(job(2))),
        (50, DeviceEvent::Done(job(2).fence)),
    ]);
    let sums = devices.sums_until(100);
    let row = &sums.processes[&(0, Some(7))];
    assert_eq!((row.jobs, row.waiting_ns, row.running_ns, row.latency.times.count()), (1, 0, 0, 0));
    assert_eq!((sums.rings[0].busy_ns, sums.rings[0].lost_ns), (50, 50));
}

#[test]
fn early_dependencies_are_those_of_one_job_and_of_one_fence() {
    let ring = ring(0);
    let name = |address, id| JobName { ring, fence: Fence::Address(address), id: Some(id) };
    let depends = |id, address, seqno| DeviceEvent::DependsById {
        ring,
        id,
        address: Fence::Address(address),
        number: Some(Fence::Number { context: 9, seqno }),
    };
    let signaled = |seqno| DeviceEvent::Signaled(Fence::Number { context: 9, seqno });
    // Two schedulers of one name give the same number.
    let devices = devices_of(&[
        (0, DeviceEvent::Queued(name(1, 1))),
        (0, DeviceEvent::Queued(name(2, 1))),
        (1, depends(1, 50, 1)),
        (20, signaled(1)),
    ]);
    assert_eq!(devices.sums_until(30).processes[&(0, Some(7))].blocked_ns, 0);
    // The fence is signaled, and its address another job's later.
    let devices = devices_of(&[
        (0, DeviceEvent::Queued(name(1, 1))),
        (1, depends(1, 50, 1)),
        (10, signaled(1)),
        (12, DeviceEvent::Queued(name(50, 2))),
        (13, DeviceEvent::Signaled(Fence::Address(50))),
    ]);
    assert_eq!(devices.sums_until(30).processes[&(0, Some(7))].blocked_ns, 10);
}
