use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, device},
    stack::Class,
};

use super::{
    super::{
        encode::{EventBlock, Unnamed},
        varint::put,
    },
    *,
};
use crate::model::function_names::Names;

fn span(begin: u64, end: u64) -> SpanRecord {
    let (own, exclusive) = ((end - begin) / 2, 0);
    SpanRecord {
        kind: RecordKind::Span as u32,
        tid: 11,
        tgid: 10,
        tag: 0x16,
        class: Class::Section as u8,
        depth: 2,
        adds: Adds::from_bits(1),
        begin,
        end,
        own,
        exclusive,
        path: 0x1234,
        name: 0xabcd,
        begin_sequence: 0,
        end_sequence: 0,
    }
}

/// Returns the events of a content, up to the first that cannot be read.
fn read(content: Vec<u8>) -> (Vec<(u64, Event)>, Option<Unreadable>) {
    let mut reader = EventReader::new(content, 1);
    let mut events = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error)),
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let (mut names, mut unnamed, mut block) = (Names::default(), Unnamed::default(), EventBlock::default());
    names.insert(0xabcd, b"run");
    let origin = Origin { pid: 10, tid: 11, depth: 3, sequence: 0 };
    let sched =
        SchedRecord { kind: RecordKind::Sched as u32, tid: 11, tgid: 0, cpu: 1, time: 5, change: 5, lost: 2 };
    let idle =
        PowerRecord { kind: RecordKind::Idle as u32, cpu: 1, time: u64::MAX, state: u32::MAX, lost: 0 };
    let app = AppEvent { change: 1, begun_by: 0, tgid: 10, tid: 11, time: 7, begin: 9, name: 0xabcd };
    let kind = RecordKind::FrequencyLimit as u32;
    let limit = Record::FrequencyLimit(LimitRecord { kind, cpu: 1, time: 6, min_khz: 0, max_khz: 900_000 });
    let kind = RecordKind::Cooling as u32;
    let device = device(b"thermal-cpufreq-0");
    let cooling = Record::Cooling(CoolingRecord { kind, device, time: u64::MAX, state: 3 });
    let inputs = [
        Input::Record(&Record::Span(span(100, 300))),
        Input::SpanAnywhere(&span(90, 120)),
        Input::Record(&Record::Sched(sched)),
        Input::Record(&Record::Idle(idle)),
        Input::Track { origin, time: 50, payload: b"C|1|x|2" },
        Input::AppEvent(&app),
        Input::NamesForgotten { kept: &[1, 2] },
        Input::Record(&limit),
        Input::Record(&cooling),
        Input::Advance { until: u64::MAX },
    ];
    // Numbers between belong to other streams.
    for (number, input) in (1..).step_by(3).zip(&inputs) {
        block.push(number, input, &names, &mut unnamed);
    }
    let (events, error) = read(block.bytes);
    assert_eq!(error, None);
    let (numbers, events): (Vec<u64>, Vec<Event>) = events.into_iter().unzip();
    assert_eq!(numbers, [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]);
    assert_eq!(events[0], Event::Record(Record::Span(span(100, 300))));
    assert_eq!(events[1], Event::SpanAnywhere(span(90, 120)));
    assert_eq!(events[2], Event::Record(Record::Sched(sched)));
    assert_eq!(events[3], Event::Record(Record::Idle(idle)));
    assert!(matches!(&events[4], Event::Track { time: 50, .. }));
    assert_eq!(events[5], Event::AppEvent(app));
    assert_eq!(events[6], Event::NamesForgotten { kept: vec![1, 2] });
    assert_eq!(events[7], Event::Record(limit));
    assert_eq!(events[8], Event::Record(cooling));
    assert_eq!(events[9], Event::Advance { until: u64::MAX });
    assert!(unnamed.is_empty());
}

#[test]
fn kinds_of_later_versions_are_passed_over() {
    let mut content = Vec::new();
    // Those that are known may have changed so much that they cannot be read.
    for (kind, distance) in [(29, 0), (30, 0), (Kind::FrequencyLimit as u64, 1), (Kind::Advance as u64, 1)] {
        put(&mut content, distance << kind::BITS | kind);
        put(&mut content, 1);
        if kind >= kind::FIRST_WITH_LENGTH {
            content.push(0xff);
        }
    }
    let (events, error) = read(content);
    assert_eq!(error, None);
    assert_eq!(events, [(1, Event::Other), (2, Event::Other), (3, Event::Advance { until: 1 })]);
}

#[test]
fn times_that_no_section_has_are_refused() {
    let (names, mut unnamed) = (Names::default(), Unnamed::default());
    let mut block = EventBlock::default();
    block.push(1, &Input::Record(&Record::Span(span(0, 2))), &names, &mut unnamed);
    let content = block.bytes;
    let ends = content.len() - 4;
    // End, length, and what own and exclusive time lack of it.
    assert_eq!(content[ends..], [4, 2, 1, 2]);
    for (at, byte) in [(ends, 2), (ends + 2, 3), (ends + 3, 3)] {
        let mut content = content.clone();
        content[at] = byte;
        let (events, error) = read(content);
        assert!(events.is_empty() && error.is_some(), "byte {at}");
    }
}
