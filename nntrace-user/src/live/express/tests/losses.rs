//! Forwarded marks that found a ring full.

use nntrace_common::{
    express::{Kind, MIN_RING_BYTES},
    mark::Label,
};

use super::{Bench, KEY, TGID, TID, depths, forwarded, handover, lane::Lane, lost};
use crate::live::express::*;

fn loss(first: u32, lost_from: u64, count: u64) -> ExpressEvent {
    let record = ForwardedRecord {
        kind: RecordKind::ForwardedLoss as u32,
        tid: TID,
        tgid: TGID,
        number: first,
        time: lost_from,
        name: count,
        label: Label::FOREIGN,
        prefix: 0,
        is_marked: 0,
        nests_anywhere: 0,
        reserved: [0; 4],
    };
    ExpressEvent::forwarded(&record).unwrap()
}

#[test]
fn a_lane_is_read_with_what_was_lost_before() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    // The end of a section at 20 and a begin at 30 are lost, and its thread goes on in its lane.
    bench.take(vec![handover(1), lane.offer(1, KEY), forwarded(1, 10, Some("[NN_LR_PE]run"))]);
    bench.express.note_lost(2, |_| Some(lost(4, 20, 2, 2)));
    for time in [40, 60] {
        assert!(lane.begin("[NN_LC_PCO]conv", time) && lane.write(Kind::End, 0, time + 10, b""));
    }
    // That of the lost begin.
    assert!(lane.write(Kind::End, 0, 80, b""));
    bench.account(100);
    assert_eq!(depths(&bench), [(40, 0), (60, 0)]);
    assert!(bench.kinds().is_empty());
    // What is known to be lost is lost once: the section at 90 is around those that come by probes.
    assert!(lane.begin("[NN_LR_PE]run", 90));
    bench.take(vec![forwarded(4, 110, Some("[NN_LC_PCO]conv")), forwarded(5, 120, None)]);
    assert!(lane.write(Kind::End, 0, 130, b""));
    bench.account(200);
    assert_eq!(depths(&bench)[2..], [(110, 1), (90, 0)]);
}

#[test]
fn a_loss_waits_for_the_marks_before_it() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY)]);
    // The begin of a section is lost, and noted before the end of another one, before it, is read.
    bench.express.note_lost(1, |_| Some(lost(4, 40, 3, 1)));
    bench.account(10);
    bench.take(vec![forwarded(1, 20, Some("[NN_LR_PE]run")), forwarded(2, 30, None)]);
    assert!(lane.begin("[NN_LC_PCO]conv", 50) && lane.write(Kind::End, 0, 60, b""));
    bench.take(vec![loss(3, 40, 3), forwarded(6, 70, Some("[NN_LR_PE]run")), forwarded(7, 80, None)]);
    bench.account(100);
    assert_eq!((depths(&bench), bench.kinds()), (vec![(20, 0), (50, 0), (70, 0)], vec![]));
}

#[test]
fn the_earliest_time_of_a_loss_counts() {
    // The state was read while the next loss was written to it; or the record came first.
    for (state, record) in [(45, 20), (20, 45)] {
        let mut bench = Bench::new();
        let mut lane = Lane::new(KEY, MIN_RING_BYTES);
        bench.take(vec![handover(1), lane.offer(1, KEY), forwarded(1, 10, Some("[NN_LR_PE]run"))]);
        bench.express.note_lost(1, |_| Some(lost(3, state, 2, 1)));
        bench.take(vec![loss(2, record, 1)]);
        assert!(lane.begin("[NN_LC_PCO]conv", 40) && lane.write(Kind::End, 0, 50, b""));
        bench.account(100);
        assert_eq!((depths(&bench), bench.kinds()), (vec![(40, 0)], vec![]));
    }
}

#[test]
fn threads_that_are_handed_over_after_a_loss_was_counted_are_asked_for_it() {
    let mut bench = Bench::new();
    bench.express.note_lost(1, |_| unreachable!("no thread is known"));
    bench.take(vec![handover(1), forwarded(1, 10, Some("[NN_LR_PE]run"))]);
    bench.express.note_lost(1, |_| Some(lost(3, 20, 2, 1)));
    bench.express.note_lost(1, |_| unreachable!("nothing is new"));
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![lane.offer(1, KEY)]);
    assert!(lane.begin("[NN_LC_PCO]conv", 40) && lane.write(Kind::End, 0, 50, b""));
    bench.account(100);
    assert_eq!((depths(&bench), bench.kinds()), (vec![(40, 0)], vec![]));
}
