//! Lanes written by threads of these tests, and what comes of them, against a plain stack.

mod lane;
mod losses;
mod ticks;

use std::os::fd::AsRawFd as _;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nntrace_common::{
    diagnostic::{Diagnostics, HeldDiagnostics},
    express::{HEADER_BYTES, Head, Kind, LANE_NAME, LEASE_NS, MAGIC, MIN_RING_BYTES, offsets},
    mark,
    record::{ForwardedRecord, LostRecords, TotalKey, after_forwarded},
    stack::Stack,
};
use proptest::prelude::*;

use self::lane::Lane;
use super::*;
use crate::model::{begin_parsing::Begins, causality::Questions, limits::Limits, thread_marks};

const TGID: u32 = 7;
const TID: u32 = 8;
const KEY: u64 = 9;

fn handover(time: u64) -> ExpressEvent {
    let kind = RecordKind::Handover as u32;
    let (stack, held) = (Stack::EMPTY, HeldDiagnostics::NONE);
    let record = HandoverRecord { kind, tid: TID, tgid: TGID, is_marked: 1, time, held, stack };
    ExpressEvent::handover(Box::new(record))
}

/// Express lane with its model and the records that it made.
struct Bench {
    express: Express,
    model: Model,
    records: Vec<Record>,
}

impl Bench {
    /// Creates one that makes a record of each section.
    fn new() -> Self {
        Self::with(Questions { missing: true, ..Questions::default() })
    }

    fn with(questions: Questions) -> Self {
        let model = Model::new(&Limits::default(), questions, None);
        Self { express: Express::new(false), model, records: Vec::new() }
    }

    fn take(&mut self, events: Vec<ExpressEvent>) {
        self.express.take(events, &mut self.model, &mut |record| self.records.push(record));
    }

    fn account(&mut self, until: u64) {
        self.express.look();
        self.express.confirm_look();
        for part in self.express.plan(until) {
            self.express.account(part, false, &mut self.model, &mut |record| self.records.push(record));
        }
    }

    fn facts(&self) -> ExpressUse {
        self.express.facts(0).unwrap()
    }

    fn kinds(&self) -> Vec<(DiagnosticKind, u64)> {
        let mut all = Vec::new();
        self.express.add_diagnostics(&mut all);
        all.into_iter().map(|(kind, count)| (kind, count.count)).collect()
    }
}

#[test]
fn a_lane_is_accepted_by_a_lease_and_read_in_order() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY)]);
    let lease = lane.get(offsets::LEASE);
    assert!(lease > clock::now() && lease <= clock::now() + LEASE_NS);
    for (time, text) in [(10, "[NN_LR_PE]run"), (20, "[NN_LC_PCO]conv")] {
        assert!(lane.begin(text, time));
    }
    for time in [30, 40] {
        assert!(lane.write(Kind::End, 0, time, b""));
    }
    bench.account(35);
    assert_eq!((bench.records.len(), lane.get(offsets::TAIL)), (1, lane.head - 16));
    bench.account(40);
    let spans = bench.records.iter().map(|record| match record {
        Record::Span(span) => (span.begin, span.end, span.own, span.exclusive, span.depth),
        other => panic!("{other:?}"),
    });
    assert_eq!(spans.collect::<Vec<_>>(), [(20, 30, 10, 10, 1), (10, 40, 30, 20, 0)]);
    assert_eq!(bench.facts(), ExpressUse { threads: 1, marks: 4, probed: 0, lost: 0, damaged: 0 });
}

#[test]
fn what_is_no_lane_is_refused() {
    let lane = Lane::new(KEY, MIN_RING_BYTES);
    let reason = |file: &File, key| Ring::map(file, key).err().map(|error| error.to_string());
    assert_eq!(reason(&lane.file, KEY), None);
    assert!(reason(&lane.file, KEY + 1).unwrap().contains("another one"));
    lane.set(offsets::MAGIC, MAGIC + 1);
    assert!(reason(&lane.file, KEY).unwrap().contains("version"));
    // One that is being made, by a thread that has got the descriptor.
    lane.set(offsets::MAGIC, 0);
    assert!(matches!(Ring::map(&lane.file, KEY), Err(LaneError::Gone)));
    let closed = Ring::accept(std::process::id(), i64::from(i32::MAX), KEY, 1, None);
    assert!(matches!(closed, Err(LaneError::Gone)));
    assert!(reason(&tempfile::tempfile().unwrap(), KEY).is_some());
    let unsealed = memfd_create(LANE_NAME, MFdFlags::MFD_ALLOW_SEALING).unwrap();
    assert!(reason(&unsealed.into(), KEY).unwrap().contains("sealed"));
    let other = memfd_create("other", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    let offered = i64::from(other.as_raw_fd());
    assert!(matches!(
        Ring::accept(std::process::id(), offered, KEY, 1, None),
        Err(LaneError::NotALane("of another name"))
    ));
    let second = Lane::new(KEY, MIN_RING_BYTES);
    let offered = i64::from(second.file.as_raw_fd());
    assert!(Ring::accept(std::process::id(), offered, KEY, 1, None).is_ok());
    assert!(matches!(Ring::accept(std::process::id(), offered, KEY, 1, None), Err(LaneError::Taken)));
}

#[test]
fn a_lane_that_is_offered_again_is_read_once() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY), lane.offer(2, KEY)]);
    lane.begin("[NN_LR_PE]run", 10);
    lane.write(Kind::End, 0, 20, b"");
    bench.account(100);
    assert_eq!(bench.facts().marks, 2);
    assert_eq!(bench.express.notes().collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_time_beyond_the_reading_is_that_of_the_reading() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY)]);
    let begin = clock::now();
    lane.begin("[NN_LR_PE]run", begin);
    lane.write(Kind::End, 0, u64::MAX, b"");
    bench.account(begin);
    let read = clock::now();
    bench.account(read);
    let next = clock::now();
    lane.begin("[NN_LR_PE]run", next);
    lane.write(Kind::End, 0, next, b"");
    bench.account(clock::now());
    let spans: Vec<_> = bench
        .records
        .iter()
        .map(|record| match record {
            Record::Span(span) => (span.begin, span.end),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!((begin..=read).contains(&spans[0].1), "{spans:?}");
    assert_eq!((spans[0].0, spans[1]), (begin, (next, next)));
}

#[test]
fn a_damaged_lane_is_counted_and_read_no_further() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY)]);
    lane.begin("[NN_LR_PE]run", 10);
    lane.write(Kind::Site, 5, 20, b"");
    lane.write(Kind::End, 0, 30, b"");
    bench.account(100);
    assert_eq!(bench.facts(), ExpressUse { threads: 1, marks: 1, probed: 0, lost: 0, damaged: 1 });
    assert!(bench.records.is_empty());
}

#[test]
fn what_a_thread_held_before_its_hand_over_counts_once_it_takes_part() {
    let mut odd = Diagnostics::NONE;
    odd.add(DiagnosticKind::UnmatchedEnd);
    let mut held = HeldDiagnostics::NONE;
    held.add(odd, 1);
    held.add(odd, 2);
    let kind = RecordKind::Handover as u32;
    let record =
        HandoverRecord { kind, tid: TID, tgid: TGID, is_marked: 0, time: 3, held, stack: Stack::EMPTY };
    let mut bench = Bench::new();
    bench.take(vec![ExpressEvent::handover(Box::new(record)), forwarded(1, 10, Some("of somebody else"))]);
    bench.account(20);
    let call = TotalKey { tid: TID, ..TotalKey::new(TGID, 0) };
    assert!(bench.kinds().is_empty() && !bench.model.marks.sites.counts_total(&call));
    // Its section does not end.
    bench.take(vec![forwarded(2, 30, Some("[NN_LR_PE]run"))]);
    bench.account(40);
    assert_eq!(bench.kinds(), [(DiagnosticKind::UnmatchedEnd, 2)]);
    assert!(bench.model.marks.sites.counts_total(&call));
}

/// Begin and depth of the sections that were recorded.
fn depths(bench: &Bench) -> Vec<(u64, u8)> {
    let depth = |record: &Record| match record {
        Record::Span(span) => (span.begin, span.depth),
        other => panic!("{other:?}"),
    };
    bench.records.iter().map(depth).collect()
}

#[test]
fn sections_around_missing_marks_are_forgotten() {
    let mut bench = Bench::new();
    let begin = Some("[NN_LR_PE]run");
    bench.take(vec![handover(1), forwarded(1, 10, begin), forwarded(4, 20, begin), forwarded(5, 30, None)]);
    bench.account(100);
    assert_eq!((depths(&bench), bench.express.open().count()), (vec![(20, 0)], 0));
    bench.take(vec![forwarded(6, 110, begin)]);
    bench.account(200);
    assert_eq!(bench.express.open().count(), 1);
    bench.express.check_numbers(|_| Some(lost(7, 0, 0, 0)));
    assert_eq!(bench.express.open().count(), 1);
    bench.express.check_numbers(|_| Some(lost(8, 0, 0, 0)));
    assert_eq!(bench.express.open().count(), 0);
}

fn lost(next: u32, lost_from: u64, first: u32, count: u32) -> Forwarding {
    Forwarding { next, is_losing: 1, lost_from, lost: LostRecords { first, count } }
}

#[test]
fn what_is_missing_before_a_mark_that_was_seen_in_a_lane_is_lost() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    let begin = Some("[NN_LR_PE]run");
    bench.take(vec![handover(1), lane.offer(1, KEY), forwarded(1, 10, begin), forwarded(3, 30, begin)]);
    assert!(lane.begin("[NN_LC_PCO]conv", 40) && lane.write(Kind::End, 0, 50, b""));
    bench.express.look();
    bench.express.confirm_look();
    // Nothing is settled.
    bench.express.account(u64::MAX, false, &mut bench.model, &mut |record| bench.records.push(record));
    assert_eq!(depths(&bench), [(40, 1)]);
}

#[test]
fn sections_that_are_open_when_a_thread_ends_are_counted() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(1), lane.offer(1, KEY)]);
    lane.begin("[NN_LR_PE]run", 10);
    assert_eq!(bench.express.open().count(), 0);
    bench.account(15);
    assert_eq!(bench.express.open().count(), 1);
    let exit = ProcessRecord { kind: RecordKind::Exit as u32, tgid: TGID, tid: TID, detail: 1, time: 20 };
    bench.take(vec![ExpressEvent::last(&Record::Exit(exit)).unwrap()]);
    assert!(bench.kinds().is_empty());
    bench.account(20);
    assert_eq!(bench.kinds(), [(DiagnosticKind::OpenAtEnd, 1)]);
}

#[test]
fn what_ended_before_the_hand_over_does_not_end_the_thread() {
    let mut bench = Bench::new();
    let mut lane = Lane::new(KEY, MIN_RING_BYTES);
    bench.take(vec![handover(10), lane.offer(10, KEY)]);
    // Of another CPU, whose ring was read too early to have it.
    let exec = ProcessRecord { kind: RecordKind::Exec as u32, tgid: TGID, tid: TID, detail: 0, time: 9 };
    bench.take(vec![ExpressEvent::last(&Record::Exec(exec)).unwrap()]);
    bench.account(15);
    lane.begin("[NN_LR_PE]run", 20);
    lane.write(Kind::End, 0, 30, b"");
    bench.account(40);
    assert_eq!((bench.facts().marks, bench.records.len()), (2, 1));
}

#[test]
fn an_event_waits_for_the_hand_over_of_its_thread() {
    let mut bench = Bench::new();
    let now = clock::now();
    bench.take(vec![forwarded(1, now, Some("[NN_LR_PE]run"))]);
    bench.take(vec![handover(now - 1), forwarded(2, now + 5, None)]);
    bench.account(now + 10);
    assert_eq!((bench.facts().probed, bench.records.len()), (2, 1));
}

#[test]
fn a_lease_that_has_run_out_is_not_renewed() {
    let lane = Lane::new(KEY, MIN_RING_BYTES);
    let mut ring =
        Ring::accept(std::process::id(), i64::from(lane.file.as_raw_fd()), KEY, 100, None).unwrap();
    assert!(ring.renew(100 + LEASE_NS / 2));
    assert_eq!(lane.get(offsets::LEASE), 100 + LEASE_NS / 2 + LEASE_NS);
    assert!(!ring.renew(100 + 2 * LEASE_NS));
    assert_eq!(lane.get(offsets::LEASE), 100 + LEASE_NS / 2 + LEASE_NS);
    ring.release();
    assert_eq!(lane.get(offsets::LEASE), 0);
}

fn forwarded(number: u32, time: u64, begin: Option<&str>) -> ExpressEvent {
    let payload = begin.map(|text| format!("B|1|{text}")).unwrap_or_default();
    let parsed = Begins::default().read(
        payload.as_bytes(),
        &mut Model::new(&Limits::default(), Questions::default(), None).marks.names,
    );
    let kind = if begin.is_some() { RecordKind::ForwardedBegin } else { RecordKind::ForwardedEnd };
    let record = ForwardedRecord {
        kind: kind as u32,
        tid: TID,
        tgid: TGID,
        number,
        time,
        name: parsed.name,
        label: parsed.label,
        prefix: parsed.prefix.code(),
        is_marked: u8::from(parsed.is_marked),
        nests_anywhere: 0,
        reserved: [0; 4],
    };
    ExpressEvent::forwarded(&record).unwrap()
}

const SITES: [&str; 6] = [
    "[NN_LR_PE]run",
    "[NN_LC_PCO]conv",
    "[SW][NN_LC_PTR]to_nhwc",
    "[SUB][NN_LR_PI]init",
    "[NN_LU_PU]util",
    "[NN_LD_PE]driver",
];

/// Way of a mark.
#[derive(Clone, Copy, Debug)]
enum Way {
    Lane(usize),
    Text(usize),
    Probe,
    ProbedText,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => (0..2_usize).prop_map(Way::Lane),
        1 => (0..2_usize).prop_map(Way::Text),
        1 => Just(Way::Probe),
        1 => Just(Way::ProbedText),
    ]
}

fn step() -> impl Strategy<Value = (Option<usize>, Way, u64, bool)> {
    (prop::option::weighted(0.55, 0..SITES.len()), way(), 1..50_u64, prop::bool::weighted(0.1))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 10_000, ..ProptestConfig::default() })]

    /// Marks of one thread by two lanes and by probes, whose records come in any order and are drained at any time, are
    /// one sequence: as a plain stack accounts it.
    #[test]
    fn all_ways_of_a_thread_are_one_stack(
        steps in prop::collection::vec(step(), 1..400), missing in any::<bool>(),
    ) {
        let mut bench = Bench::with(Questions { missing, ..Questions::default() });
        let mut lanes = [Lane::new(KEY, MIN_RING_BYTES), Lane::new(KEY + 1, MIN_RING_BYTES)];
        bench.take(vec![handover(1), lanes[0].offer(1, KEY), lanes[1].offer(1, KEY + 1)]);
        let mut names = Model::new(&Limits::default(), Questions::default(), None).marks;
        let (mut plain, mut begins) = (ThreadMarks::default(), Begins::default());
        let (mut expected, mut found) = (Vec::new(), DiagnosticCounts::default());
        let (mut now, mut number, mut pending) = (1_000, 1, Vec::new());
        for (site, way, gap, drains) in steps {
            now += gap;
            let text = site.map(|site| SITES[site]);
            let payload = text.map_or("E|1".to_owned(), |text| format!("B|1|{text}"));
            let is_written = match way {
                Way::Lane(lane) => match text {
                    Some(text) => lanes[lane].begin(text, now),
                    None => lanes[lane].write(Kind::End, 0, now, b""),
                },
                Way::Text(lane) => lanes[lane].write(Kind::Text, payload.len() as u32, now, payload.as_bytes()),
                Way::Probe | Way::ProbedText => false,
            };
            if !is_written {
                let event = if matches!(way, Way::ProbedText) {
                    let mark = ForwardedMark::Text(payload.as_bytes().into());
                    let kind = EventKind::Forwarded(Forwarded { time: now, number, mark });
                    ExpressEvent { tgid: TGID, tid: TID, time: now, kind }
                } else {
                    forwarded(number, now, text)
                };
                // As of several CPUs.
                pending.insert(pending.len() / 2, event);
                number = after_forwarded(number);
            }
            let mut close = |stack: &Stack, closed: &nntrace_common::stack::Closed| {
                expected.push(Record::Span(thread_marks::span((TGID, TID, true), stack, closed, &mut names.paths)));
            };
            let diagnostics = if text.is_some() {
                let begin = begins.read(payload.as_bytes(), &mut names.names);
                plain.join(&begin);
                plain.begin(now, &begin, &mut close)
            } else {
                plain.end(now, &mut close)
            };
            found.add_all(diagnostics, now, TID, mark::name(payload.as_bytes(), 0));
            if drains {
                bench.take(std::mem::take(&mut pending));
                bench.account(now);
            }
        }
        bench.take(pending);
        bench.account(now);
        if missing {
            prop_assert_eq!(&bench.records, &expected);
        }
        for record in &bench.records {
            bench.model.record(record);
        }
        let mut sections = Model::new(&Limits::default(), Questions::default(), None);
        for record in &expected {
            sections.record(record);
        }
        prop_assert_eq!(bench.model.marks.sites.totals(), sections.marks.sites.totals());
        let kinds: Vec<_> = found.counts().into_iter().map(|(kind, count)| (kind, count.count)).collect();
        prop_assert_eq!(bench.kinds(), kinds);
        prop_assert_eq!(bench.facts().damaged, 0);
        let mut totals = Totals::default();
        bench.express.add_totals(&mut totals);
        prop_assert_eq!(totals.values().map(|total| total.count).sum::<u64>(), expected.len() as u64);
        prop_assert_eq!(bench.express.open().count(), plain.stack().open_frames().count());
    }

    /// Whatever is in the memory, reading ends, and nothing of it is believed that is no record.
    #[test]
    fn any_bytes_may_be_in_a_lane(
        words in prop::collection::vec(prop_oneof![any::<u64>(), 0..600_u64, Just(Head::word(Kind::Text, 32, 9))], 0..200),
        head in prop_oneof![any::<u64>(), (0..2048_u64).prop_map(|units| units * 16)],
    ) {
        let mut bench = Bench::new();
        let lane = Lane::new(KEY, MIN_RING_BYTES);
        bench.take(vec![handover(1), lane.offer(1, KEY)]);
        for (number, word) in words.iter().enumerate() {
            lane.set(HEADER_BYTES + 8 * number, *word);
        }
        lane.set(offsets::HEAD, head);
        bench.account(u64::MAX);
        prop_assert!(bench.facts().marks <= MIN_RING_BYTES as u64 / 16);
    }
}
