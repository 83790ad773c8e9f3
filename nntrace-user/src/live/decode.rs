//! Decoding of ring buffer bytes into [`Record`]s.

use nntrace_common::{
    frequency_limits::CoolingRecord,
    mark::Label,
    record::{
        BeginRecord, ForwardedRecord, HandoverRecord, LaneRecord, PowerRecord, ProcessRecord, Record,
        RecordKind, SchedRecord, TrackRecord,
    },
    rivals::RivalRecord,
};
use zerocopy::FromBytes;

use super::express::ExpressEvent;
use crate::model::causality::Origin;

/// Decodes one record; `None` when its kind or size is not one that the programs write.
#[must_use]
pub(crate) fn record(bytes: &[u8]) -> Option<Record> {
    let kind = kind(bytes)?;
    let is = |wanted: RecordKind| kind == wanted as u32;
    Some(match () {
        () if is(RecordKind::Span) => Record::Span(read(bytes)?),
        () if is(RecordKind::ProvisionalSpan) => Record::Span(read(bytes)?),
        () if is(RecordKind::Begin) => Record::Begin(begin(bytes)?),
        () if is(RecordKind::Idle) => Record::Idle(read::<PowerRecord>(bytes)?),
        () if is(RecordKind::Frequency) => Record::Frequency(read(bytes)?),
        () if is(RecordKind::Hotplug) => Record::Hotplug(read(bytes)?),
        () if is(RecordKind::FrequencyLimit) => Record::FrequencyLimit(read(bytes)?),
        () if is(RecordKind::Cooling) => Record::Cooling(read::<CoolingRecord>(bytes)?),
        () if is(RecordKind::Fork) => Record::Fork(read::<ProcessRecord>(bytes)?),
        () if is(RecordKind::Exec) => Record::Exec(read(bytes)?),
        () if is(RecordKind::Exit) => Record::Exit(read(bytes)?),
        () if is(RecordKind::Sched) => Record::Sched(read::<SchedRecord>(bytes)?),
        () if is(RecordKind::Rival) => Record::Rival(read::<RivalRecord>(bytes)?),
        () if is(RecordKind::Loader) => Record::Loader(read(bytes)?),
        () if is(RecordKind::TakesPart) => Record::TakesPart(read(bytes)?),
        () => return None,
    })
}

/// Decodes the record of a thread with lanes; `None` when it is none.
#[must_use]
pub(crate) fn express(bytes: &[u8]) -> Option<ExpressEvent> {
    let kind = kind(bytes)?;
    let is = |wanted: RecordKind| kind == wanted as u32;
    if [RecordKind::ForwardedBegin, RecordKind::ForwardedEnd, RecordKind::ForwardedLoss].into_iter().any(is) {
        let record: ForwardedRecord = read(bytes)?;
        Label::from_byte(record.label.byte())?;
        ExpressEvent::forwarded(&record)
    } else if is(RecordKind::ForwardedText) {
        ExpressEvent::text(TrackRecord::ref_from_bytes(bytes).ok()?)
    } else if is(RecordKind::Lane) {
        Some(ExpressEvent::lane(read::<LaneRecord>(bytes)?))
    } else if is(RecordKind::Handover) {
        handover(bytes).map(ExpressEvent::handover)
    } else {
        None
    }
}

fn handover(bytes: &[u8]) -> Option<Box<HandoverRecord>> {
    if bytes.len() != size_of::<HandoverRecord>() {
        return None;
    }
    // SAFETY: as many bytes as the type has, from a kernel program that wrote a value of this very type there: enums
    // included, as its stack is the same structure. The bytes need not be aligned.
    Some(Box::new(unsafe { bytes.as_ptr().cast::<HandoverRecord>().read_unaligned() }))
}

/// Returns the [`RecordKind`] that a record begins with.
fn kind(bytes: &[u8]) -> Option<u32> {
    u32::read_from_prefix(bytes).ok().map(|(kind, _)| kind)
}

/// Reads a record; `None` when the size is another one.
fn read<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    T::read_from_bytes(bytes).ok()
}

fn begin(bytes: &[u8]) -> Option<BeginRecord> {
    let record: BeginRecord = read(bytes)?;
    Label::from_byte(record.label.byte()).map(|_| record)
}

/// Mark as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track<'a> {
    /// Origin of the mark.
    pub(crate) origin: Origin,
    /// Time of the mark, ns.
    pub time: u64,
    /// Offset of a section's name in the payload, for the begin of a section; `None` for counters, instants and the
    /// ends of asynchronous slices.
    pub name_at: Option<u16>,
    /// Text of the mark.
    pub payload: &'a [u8],
}

/// Decodes a [`TrackRecord`]; `None` when the bytes are none.
#[must_use]
pub(crate) fn track(bytes: &[u8]) -> Option<Track<'_>> {
    let kind = kind(bytes)?;
    let is_begin = kind == RecordKind::AnnotatedBegin as u32;
    if !is_begin && kind != RecordKind::Track as u32 {
        return None;
    }
    let record = TrackRecord::ref_from_bytes(bytes).ok()?;
    let name_at = if is_begin { Some(u16::try_from(record.name_at).ok()?) } else { None };
    let origin =
        Origin { pid: record.tgid, tid: record.tid, depth: u8::try_from(record.depth).ok()?, sequence: 0 };
    Some(Track { origin, time: record.time, name_at, payload: record.payload.get(..record.len as usize)? })
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        frequency_limits::{LimitRecord, device},
        mark::BUFFER_BYTES,
        record::SpanRecord,
        stack::Adds,
    };
    use zerocopy::IntoBytes as _;

    use super::*;

    #[test]
    fn what_the_kernel_lays_out_is_read_back() {
        let span = SpanRecord {
            kind: RecordKind::Span as u32,
            tid: 1,
            tgid: 2,
            tag: 3,
            class: 4,
            depth: 5,
            adds: Adds::from_bits(3),
            begin: 6,
            end: 7,
            own: 8,
            exclusive: 9,
            path: 10,
            name: 11,
            begin_sequence: 12,
            end_sequence: 13,
        };
        assert_eq!(record(span.as_bytes()), Some(Record::Span(span)));
        let idle = PowerRecord { kind: RecordKind::Idle as u32, cpu: 1, time: 2, state: 3, lost: 4 };
        assert_eq!(record(idle.as_bytes()), Some(Record::Idle(idle)));
        let exit = ProcessRecord { kind: RecordKind::Exit as u32, tgid: 1, tid: 2, detail: 3, time: 4 };
        assert_eq!(record(exit.as_bytes()), Some(Record::Exit(exit)));
        let sched = SchedRecord {
            kind: RecordKind::Sched as u32,
            tid: 1,
            tgid: 2,
            cpu: 3,
            time: 4,
            change: 5,
            lost: 6,
        };
        assert_eq!(record(sched.as_bytes()), Some(Record::Sched(sched)));
        let kind = RecordKind::FrequencyLimit as u32;
        let limit = LimitRecord { kind, cpu: 1, time: 2, min_khz: 3, max_khz: 4 };
        assert_eq!(record(limit.as_bytes()), Some(Record::FrequencyLimit(limit)));
        let kind = RecordKind::Cooling as u32;
        let cooling = CoolingRecord { kind, device: device(b"cpufreq-cpu0"), time: 1, state: 2 };
        assert_eq!(record(cooling.as_bytes()), Some(Record::Cooling(cooling)));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(record(&[]), None);
        assert_eq!(record(&[0; 24]), None);
        assert_eq!(record((RecordKind::Span as u32).as_bytes()), None);
    }

    #[test]
    fn a_begin_with_a_label_of_no_tag_is_refused() {
        let begin = |label: u8| {
            let mut bytes = BeginRecord::new(1, 2, Label::FOREIGN, 3, 4).as_bytes().to_vec();
            bytes[12] = label;
            record(&bytes)
        };
        assert!(begin(0x80).is_some());
        assert_eq!(begin(0xff), None);
    }

    #[test]
    fn a_track_ends_where_its_length_says_and_a_longer_one_is_refused() {
        let track_of = |kind: RecordKind, len: u32| TrackRecord {
            kind: kind as u32,
            tid: 1,
            tgid: 2,
            len,
            time: 3,
            name_at: 4,
            depth: 5,
            payload: [b'x'; BUFFER_BYTES],
        };
        let decoded = |record: &TrackRecord| {
            track(record.as_bytes())
                .map(|track| (track.origin, track.time, track.name_at, track.payload.len()))
        };
        let origin = Origin { pid: 2, tid: 1, depth: 5, sequence: 0 };
        assert_eq!(decoded(&track_of(RecordKind::Track, 7)), Some((origin, 3, None, 7)));
        assert_eq!(decoded(&track_of(RecordKind::AnnotatedBegin, 9)), Some((origin, 3, Some(4), 9)));
        assert_eq!(decoded(&track_of(RecordKind::Track, BUFFER_BYTES as u32 + 1)), None);
        assert_eq!(decoded(&track_of(RecordKind::Span, 7)), None);
        assert_eq!(track(&track_of(RecordKind::Track, 7).as_bytes()[..64]), None);
    }
}
