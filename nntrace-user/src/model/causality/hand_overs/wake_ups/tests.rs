use nntrace_common::{
    layer::{Layer, Phase},
    stack::Closed,
};

use super::*;
use crate::model::causality::hand_overs::hand_over::Part;

const RUNTIME: Tag = Tag::new(Layer::Runtime, Phase::Execution);
const DRIVER: Tag = Tag::new(Layer::Driver, Phase::Execution);
/// Thread of the runtime, in process 10.
const GIVER: u32 = 11;
/// Thread of the driver, in process 20.
const TAKER: u32 = 21;

/// Wake-ups, and the hand-overs that they have become.
struct Run {
    wake_ups: WakeUps,
    found: Vec<HandOver>,
}

impl Run {
    fn new(most: usize) -> Self {
        Self { wake_ups: WakeUps::new(most), found: Vec::new() }
    }

    /// One wakes the other, which gets a CPU so much later.
    fn wake(&mut self, by: u32, tid: u32, time: u64, wait: u64) {
        self.wake_ups.woken(tid, by, time, &mut |hand_over| self.found.push(hand_over));
        self.wake_ups.runs(tid, time + wait);
    }

    fn section(&mut self, tid: u32, begin: u64, end: u64) {
        self.section_after_receipt(tid, begin, end, None);
    }

    fn section_after_receipt(&mut self, tid: u32, begin: u64, end: u64, received: Option<u64>) {
        let tag = if tid == GIVER { RUNTIME } else { DRIVER };
        let span = SpanRecord::new(tid - 1, tid, true, &Closed::alone(tag, u64::from(tid), begin, end, 0));
        self.wake_ups.section(&span, tag, received, &mut |hand_over| self.found.push(hand_over));
    }

    fn results(self) -> Vec<HandOver> {
        self.found.into_iter().chain(self.wake_ups.into_open()).collect()
    }
}

/// Returns propagation, setup, execution and tail.
fn parts(hand_over: &HandOver) -> [Option<u64>; 4] {
    [Part::Propagation, Part::Setup, Part::Execution, Part::Tail].map(|part| hand_over.part(part))
}

#[test]
fn work_is_given_taken_and_handed_back() {
    for answer_comes_before_the_end in [false, true] {
        let mut run = Run::new(100);
        run.wake(GIVER, TAKER, 1_000, 40);
        if answer_comes_before_the_end {
            run.wake(TAKER, GIVER, 1_990, 35);
            run.section(TAKER, 1_100, 1_990);
        } else {
            run.section(TAKER, 1_100, 1_990);
            run.wake(TAKER, GIVER, 1_995, 30);
        }
        run.section(GIVER, 500, 2_500);
        let [found] = run.results()[..] else { panic!() };
        assert_eq!(parts(&found), [Some(40), Some(60), Some(890), Some(35)]);
        assert_eq!((found.from, found.to), (Some(RUNTIME), Some(DRIVER)));
        assert_eq!(found.dispatch, Some(Moment { pid: 10, tid: GIVER, time: 1_000, sequence: 0 }));
        assert_eq!(found.receive, Some(Moment { pid: 20, tid: TAKER, time: 1_040, sequence: 0 }));
    }
}

#[test]
fn only_the_last_wake_up_before_a_section_counts() {
    let mut run = Run::new(100);
    for time in [1_000, 2_000, 3_000] {
        run.wake(GIVER, TAKER, time, 10);
    }
    run.section(TAKER, 3_020, 3_100);
    // It goes on without help.
    run.section(TAKER, 3_150, 3_200);
    run.section(GIVER, 500, 4_000);
    let dispatches: Vec<_> = run.results().iter().map(|it| it.dispatch.map(|at| at.time)).collect();
    assert_eq!(dispatches, [Some(3_000)]);
}

#[test]
fn who_is_woken_in_a_section_takes_no_other_work() {
    let mut run = Run::new(100);
    run.wake(GIVER, TAKER, 1_000, 10);
    run.section(TAKER, 900, 1_100);
    run.section(TAKER, 1_200, 1_300);
    run.section(GIVER, 500, 2_000);
    assert_eq!(run.results(), []);
}

#[test]
fn who_wakes_in_no_section_gives_no_work() {
    let mut run = Run::new(100);
    run.wake(GIVER, TAKER, 1_000, 10);
    run.section(TAKER, 1_100, 1_200);
    run.section(GIVER, 1_500, 2_000);
    assert_eq!(run.results(), []);
}

#[test]
fn other_evidence_comes_first() {
    let mut run = Run::new(100);
    run.wake(GIVER, TAKER, 1_000, 10);
    run.section_after_receipt(TAKER, 1_100, 1_200, Some(1_050));
    run.section(GIVER, 500, 2_000);
    assert_eq!(run.results(), []);
    let mut run = Run::new(100);
    run.wake(GIVER, TAKER, 1_000, 10);
    run.section_after_receipt(TAKER, 1_100, 1_200, Some(950));
    run.section(GIVER, 500, 2_000);
    assert_eq!(run.results().len(), 1);
}

#[test]
fn each_of_many_is_found_in_little_room() {
    let mut run = Run::new(4);
    for round in 0..1_000 {
        let at = round * 1_000;
        run.wake(GIVER, TAKER, at + 100, 10);
        run.section(TAKER, at + 200, at + 300);
        run.wake(TAKER, GIVER, at + 301, 10);
        run.section(GIVER, at, at + 900);
    }
    let threads = run.wake_ups.sleepers.len() + run.wake_ups.given.len() + run.wake_ups.last.len();
    assert!(run.wake_ups.open.len() <= 4 && threads <= 16, "{:?}", run.wake_ups);
    let found = run.results();
    assert_eq!(found.len(), 1_000);
    assert!(found.iter().all(|it| parts(it) == [Some(10), Some(90), Some(100), Some(11)]), "{found:?}");
}

#[test]
fn threads_of_which_nothing_is_open_are_forgotten() {
    let mut run = Run::new(4);
    for tid in 100..10_000 {
        run.wake(tid, tid + 1, u64::from(tid), 1);
    }
    let WakeUps { open, sleepers, given, last, .. } = &run.wake_ups;
    assert!(open.len() <= 4 && sleepers.len() + given.len() + last.len() <= 20);
}

#[test]
fn threads_without_sections_take_no_more_room() {
    let mut run = Run::new(1 << 20);
    for time in 0..100_000 {
        run.wake(GIVER, TAKER, 10 * time, 1);
    }
    assert!(run.wake_ups.sleepers[&TAKER].woken.len() <= MOST_WAITING);
    assert!(run.wake_ups.given[&GIVER].len() <= MOST_WAITING);
    // The last one still counts.
    run.section(TAKER, 1_000_000, 1_000_010);
    run.section(GIVER, 0, 2_000_000);
    assert_eq!(run.results().len(), 1);
}
