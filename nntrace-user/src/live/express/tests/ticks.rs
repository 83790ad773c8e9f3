//! Times in lanes: in ticks of the processor's counter, and distinct where a thread has several lanes.

use std::os::fd::AsRawFd as _;

use nntrace_common::express::{Kind, LEASE_NS, MIN_RING_BYTES, clocks, offsets};

use super::{
    super::{
        ring::{self, Ring},
        tick_clock::{Line, Reading},
    },
    Bench, KEY, handover,
    lane::Lane,
};
use crate::live::clock;

/// Accepts a lane, as one that may have ticks of 4 ns, of which number 1,000 is at 4,050 ns.
fn accepted_with_ticks(lane: &Lane) -> (Ring, Line) {
    let reading = |ticks, time| Reading { ticks, time };
    let line = Line::between(reading(0, 50), reading(1_000, 4_050)).unwrap();
    let file = i64::from(lane.file.as_raw_fd());
    let ring = Ring::accept(std::process::id(), file, KEY, 8_050, Some(line)).unwrap();
    ring.promise();
    (ring, line)
}

fn no_site(_: &[u8]) -> ring::Site {
    panic!("there is no site")
}

#[test]
fn ticks_are_converted_where_they_are_allowed() {
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    lane.set(offsets::CLOCK, clocks::NS_OR_TICKS);
    let (mut ring, line) = accepted_with_ticks(&lane);
    assert_eq!(
        (lane.get(offsets::LEASE), lane.get(offsets::TICK_LEASE)),
        (8_050 + LEASE_NS, 2_000 + LEASE_NS / 4)
    );
    assert!(ring.renew(8_050 + LEASE_NS / 2));
    assert_eq!(lane.get(offsets::TICK_LEASE), 2_000 + LEASE_NS / 8 * 3);
    lane.set(offsets::CLOCK, clocks::TICKS);
    for ticks in [500, 2_000, u64::MAX] {
        lane.write(Kind::End, 0, ticks, b"");
    }
    ring.look();
    let mut next = || {
        let head = ring.peek(no_site).unwrap();
        ring.advance(&head);
        head.time
    };
    assert_eq!((next(), next()), (2_050, 8_050));
    assert!((8_050..=clock::now()).contains(&next()), "no time is later than its reading");
    // The kernel has left the counter.
    ring.convert_by(Some(line));
    assert!(lane.get(offsets::TICK_LEASE) > 0);
    ring.convert_by(None);
    assert_eq!((lane.get(offsets::LEASE), lane.get(offsets::TICK_LEASE)), (0, 0));
    lane.write(Kind::End, 0, 3_000, b"");
    ring.look();
    assert_eq!(ring.peek(no_site).unwrap().time, 12_050, "written before it was told");
}

#[test]
fn a_lane_that_knows_no_ticks_or_has_chosen_none_is_in_nanoseconds() {
    for clock in [clocks::NS, clocks::NS_OR_TICKS] {
        let mut lane = Lane::new(KEY, MIN_RING_BYTES);
        lane.set(offsets::CLOCK, clock);
        let (mut ring, _) = accepted_with_ticks(&lane);
        assert_eq!(lane.get(offsets::TICK_LEASE) != 0, clock != clocks::NS);
        lane.write(Kind::End, 0, 500, b"");
        ring.look();
        assert_eq!(ring.peek(no_site).unwrap().time, 500);
        ring.convert_by(None);
        assert_eq!((lane.get(offsets::LEASE), lane.get(offsets::TICK_LEASE)), (8_050 + LEASE_NS, 0));
    }
}

#[test]
fn ticks_that_were_not_allowed_are_damage() {
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    let (mut ring, _) = accepted_with_ticks(&lane);
    lane.set(offsets::CLOCK, clocks::TICKS);
    lane.write(Kind::End, 0, 500, b"");
    ring.look();
    assert!(ring.is_broken() && ring.peek(no_site).is_none());
}

#[test]
fn times_have_to_differ_while_a_thread_has_several_lanes() {
    let mut bench = Bench::new();
    let mut lanes = [KEY, KEY + 1, KEY + 2].map(|key| Lane::new(key, MIN_RING_BYTES));
    let distinct = |lanes: &[Lane; 3]| lanes.each_ref().map(|lane| lane.get(offsets::DISTINCT));
    bench.take(vec![handover(1), lanes[0].offer(1, KEY)]);
    assert_eq!(distinct(&lanes), [0, 0, 0]);
    bench.take(vec![lanes[1].offer(2, KEY + 1)]);
    assert_eq!(distinct(&lanes), [1, 1, 0]);
    lanes[0].begin("[NN_LR_PE]run", 10);
    lanes[0].set(offsets::CLOSED, 1);
    bench.account(100);
    assert_eq!(distinct(&lanes), [1, 0, 0], "the first is read to its end");
    // A larger one in place of the second.
    lanes[1].set(offsets::CLOSED, 1);
    bench.take(vec![lanes[2].offer(200, KEY + 2)]);
    assert_eq!(distinct(&lanes)[2], 0);
}
