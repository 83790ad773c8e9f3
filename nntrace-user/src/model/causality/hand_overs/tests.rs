use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::Closed,
};
use proptest::prelude::*;

use super::*;

fn moment(tid: u32, time: u64) -> Moment {
    Moment { pid: 1, tid, time, sequence: 0 }
}

fn span(tid: u32, depth: u8, begin: u64, end: u64, name: u64) -> SpanRecord {
    let tag = Tag::new(Layer::CpuFallback, Phase::Execution);
    let alone = Closed::alone(tag, name, begin, end, 0);
    // Another path than that of an outermost one, where sections are around.
    let closed = Closed { depth, path: alone.path ^ u64::from(depth), ..alone };
    SpanRecord::new(1, tid, true, &closed)
}

fn add(hand_overs: &mut HandOvers, span: &SpanRecord, name: &str) {
    hand_overs.section(span, Tag::new(Layer::CpuFallback, Phase::Execution), name.as_bytes());
}

#[test]
fn a_list_that_is_full_counts() {
    let limits = Limits { sections: 2, ..Limits::default() };
    let mut hand_overs = HandOvers::new(&limits);
    for number in 0..5_u64 {
        let key = (1, Handle::OfProcess(number));
        hand_overs.sent(key, moment(1, number));
        hand_overs.received(key, moment(1, number), moment(2, 10 + number), 0, None);
    }
    let results = hand_overs.results();
    assert_eq!((results.list.len(), results.rows.iter().map(|(_, row, _)| row.count).sum::<u64>()), (2, 5));
}

#[test]
fn work_goes_on_while_more_is_taken_in_it() {
    let mut hand_overs = HandOvers::new(&Limits::default());
    let key = (1, Handle::OfProcess(7));
    hand_overs.sent(key, moment(1, 1));
    hand_overs.received(key, moment(1, 1), moment(2, 3), 0, None);
    add(&mut hand_overs, &span(2, 1, 5, 6, 2), "inner");
    // In a section from 4 on, which has not ended.
    hand_overs.received(key, moment(1, 1), moment(2, 7), 1, None);
    add(&mut hand_overs, &span(2, 0, 4, 8, 1), "work");
    let starts: Vec<_> = hand_overs.results().list.iter().map(|hand_over| hand_over.start).collect();
    assert_eq!(starts, [Some(4.into()), None]);
}

#[test]
fn work_is_taken_in_the_instant_in_which_the_one_before_ends() {
    let mut hand_overs = HandOvers::new(&Limits::default());
    let key = (1, Handle::OfProcess(7));
    hand_overs.sent(key, moment(1, 1));
    hand_overs.received(key, moment(1, 1), moment(2, 9), 0, None);
    add(&mut hand_overs, &span(2, 0, 4, 9, 1), "before");
    add(&mut hand_overs, &span(2, 0, 12, 15, 1), "work");
    // Of one in a section that ends with the receipt, nothing more can begin.
    hand_overs.sent(key, moment(1, 20));
    hand_overs.received(key, moment(1, 20), moment(3, 30), 1, None);
    add(&mut hand_overs, &span(3, 0, 25, 30, 1), "around");
    add(&mut hand_overs, &span(3, 0, 32, 35, 1), "another");
    let starts: Vec<_> = hand_overs.results().list.iter().map(|hand_over| hand_over.start).collect();
    assert_eq!(starts, [Some(12.into()), None]);
}

#[test]
fn work_taken_in_an_unmarked_section_is_the_outermost_one_behind_it() {
    let mut hand_overs = HandOvers::new(&Limits::default());
    let key = (1, Handle::OfProcess(7));
    hand_overs.sent(key, moment(1, 1));
    // In a section without a mark, which ends before the work begins.
    hand_overs.received(key, moment(1, 1), moment(2, 4), 1, None);
    add(&mut hand_overs, &span(2, 1, 10, 11, 2), "first");
    add(&mut hand_overs, &span(2, 1, 20, 35, 3), "second");
    add(&mut hand_overs, &span(2, 0, 8, 40, 1), "run");
    let works: Vec<_> =
        hand_overs.results().list.iter().map(|hand_over| hand_over.start.zip(hand_over.end)).collect();
    assert_eq!(works, [Some((8.into(), 40.into()))]);
}

#[test]
fn nothing_grows_without_bound() {
    let limits = Limits { hand_overs: 100, threads: 20, sections: 1_000, ..Limits::default() };
    let mut hand_overs = HandOvers::new(&limits);
    for number in 0..100_000_u64 {
        let (key, tid) = ((1, Handle::OfProcess(number)), 10 + (number % 50) as u32);
        hand_overs.sent(key, moment(1, number * 10));
        hand_overs.received(key, moment(1, number * 10), moment(tid, number * 10 + 5), 0, None);
        hand_overs.received_early((1, Handle::OfSystem(number)), moment(tid, number * 10 + 6), 0);
        hand_overs.gate(tid, number.into());
        hand_overs.slice_begins(number, b"upload", moment(1, number));
        hand_overs.callback(b"HIDL::IExecutionCallback::notify::client", moment(1, number));
        add(&mut hand_overs, &span(1, 0, number * 10, number * 10 + 1, 1), "HIDL::IDevice::f::client");
    }
    assert!(hand_overs.open.len() <= 100 && hand_overs.sent.len() <= 100);
    assert!(hand_overs.by_handle.len() <= 202 && hand_overs.early.len() <= 101);
    assert!(hand_overs.threads.len() <= 20 && hand_overs.done.list.len() <= 1_000);
    assert!(hand_overs.calls.waiting() < 1 << 16);
}

/// Work of one thread: when it is taken, when it begins after that, how long it takes, and what is around it.
#[derive(Clone, Debug)]
struct Job {
    wait: u64,
    setup: Option<u64>,
    length: u64,
    inner: bool,
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (1..50_u64, prop::option::weighted(0.9, 0..30_u64), 2..40_u64, any::<bool>());
    prop::collection::vec(job, 1..60).prop_map(|jobs| {
        let job = |(wait, setup, length, inner)| Job { wait, setup, length, inner };
        jobs.into_iter().map(job).collect()
    })
}

proptest! {
    /// Against the plan by which the events were made.
    #[test]
    fn the_first_section_behind_a_receipt_does_the_work(jobs in jobs(), has_loop in any::<bool>()) {
        let mut hand_overs = HandOvers::new(&Limits::default());
        let depth = u8::from(has_loop);
        let (mut now, mut expected) = (100, Vec::new());
        for (number, job) in (0..).zip(&jobs) {
            let key = (1, Handle::OfProcess(number));
            hand_overs.sent(key, moment(1, now));
            let received = now + job.wait;
            hand_overs.received(key, moment(1, now), moment(2, received), depth, None);
            now = received;
            if let Some(setup) = job.setup {
                let (begin, end) = (received + setup, received + setup + job.length);
                if job.inner {
                    add(&mut hand_overs, &span(2, depth + 1, begin, begin + 1, 8), "inner");
                }
                add(&mut hand_overs, &span(2, depth, begin, end, 7), "work");
                now = end;
            }
            expected.push((received, job.setup.map(|setup| (received + setup, received + setup + job.length))));
        }
        if has_loop {
            add(&mut hand_overs, &span(2, 0, 50, now + 1, 9), "loop");
        }
        let results = hand_overs.results();
        prop_assert_eq!(results.list.len(), jobs.len());
        // Without a section of its own, work is done by the next one.
        let mut next = None;
        for (received, work) in expected.iter_mut().rev() {
            next = work.or(next);
            *work = next;
            let _ = received;
        }
        for (hand_over, (received, work)) in results.list.iter().zip(&expected) {
            prop_assert_eq!(hand_over.receive, Some(moment(2, *received)));
            let found = hand_over.start.zip(hand_over.end).map(|(start, end)| (start.time, end.time));
            prop_assert_eq!(found, *work);
            let parts = [Part::Propagation, Part::Setup, Part::Head].map(|part| hand_over.part(part));
            if let [Some(propagation), Some(setup), Some(head)] = parts {
                prop_assert_eq!(propagation + setup, head);
            }
        }
    }
}
