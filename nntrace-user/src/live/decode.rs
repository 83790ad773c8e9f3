//! Decoding of ring buffer bytes into [`Record`]s.

use bytes::Buf;
use nntrace_common::{
    mark::Label,
    record::{
        BeginRecord, PowerRecord, ProcessRecord, Record, RecordKind, SchedRecord, SpanRecord, TrackRecord,
    },
    stack::Adds,
};

use crate::model::causality::Origin;

/// Decodes one record; `None` when its kind or size is not one that the programs write.
#[must_use]
pub(crate) fn record(mut bytes: &[u8]) -> Option<Record> {
    let size = bytes.len();
    let kind = bytes.try_get_u32_ne().ok()?;
    let is = |wanted: RecordKind, wanted_size| kind == wanted as u32 && size == wanted_size;
    Some(match () {
        () if is(RecordKind::Span, size_of::<SpanRecord>()) => Record::Span(span(kind, bytes)),
        () if is(RecordKind::ProvisionalSpan, size_of::<SpanRecord>()) => Record::Span(span(kind, bytes)),
        () if is(RecordKind::Begin, size_of::<BeginRecord>()) => Record::Begin(begin(bytes)?),
        () if is(RecordKind::Idle, size_of::<PowerRecord>()) => Record::Idle(power(kind, bytes)),
        () if is(RecordKind::Frequency, size_of::<PowerRecord>()) => Record::Frequency(power(kind, bytes)),
        () if is(RecordKind::Hotplug, size_of::<PowerRecord>()) => Record::Hotplug(power(kind, bytes)),
        () if is(RecordKind::Fork, size_of::<ProcessRecord>()) => Record::Fork(process(kind, bytes)),
        () if is(RecordKind::Exec, size_of::<ProcessRecord>()) => Record::Exec(process(kind, bytes)),
        () if is(RecordKind::Exit, size_of::<ProcessRecord>()) => Record::Exit(process(kind, bytes)),
        () if is(RecordKind::Sched, size_of::<SchedRecord>()) => Record::Sched(sched(kind, bytes)),
        () if is(RecordKind::Loader, size_of::<ProcessRecord>()) => Record::Loader(process(kind, bytes)),
        () => return None,
    })
}

fn span(kind: u32, mut bytes: &[u8]) -> SpanRecord {
    SpanRecord {
        kind,
        tid: bytes.get_u32_ne(),
        tgid: bytes.get_u32_ne(),
        tag: bytes.get_u8(),
        class: bytes.get_u8(),
        depth: bytes.get_u8(),
        adds: Adds::from_bits(bytes.get_u8()),
        begin: bytes.get_u64_ne(),
        end: bytes.get_u64_ne(),
        own: bytes.get_u64_ne(),
        exclusive: bytes.get_u64_ne(),
        path: bytes.get_u64_ne(),
        name: bytes.get_u64_ne(),
    }
}

fn begin(mut bytes: &[u8]) -> Option<BeginRecord> {
    let (tid, tgid) = (bytes.get_u32_ne(), bytes.get_u32_ne());
    let label = Label::from_byte(bytes.get_u8())?;
    bytes.advance(3);
    let time = bytes.get_u64_ne();
    Some(BeginRecord::new(tgid, tid, label, bytes.get_u64_ne(), time))
}

/// Mark as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track<'a> {
    /// Origin of the mark.
    pub origin: Origin,
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
pub(crate) fn track(mut bytes: &[u8]) -> Option<Track<'_>> {
    let size = bytes.len();
    let kind = bytes.try_get_u32_ne().ok()?;
    let is_begin = kind == RecordKind::AnnotatedBegin as u32;
    if (!is_begin && kind != RecordKind::Track as u32) || size != size_of::<TrackRecord>() {
        return None;
    }
    let (tid, tgid, len) = (bytes.get_u32_ne(), bytes.get_u32_ne(), bytes.get_u32_ne());
    let (time, name_at, depth) = (bytes.get_u64_ne(), bytes.get_u32_ne(), bytes.get_u32_ne());
    let name_at = if is_begin { Some(u16::try_from(name_at).ok()?) } else { None };
    let origin = Origin { pid: tgid, tid, depth: u8::try_from(depth).ok()? };
    Some(Track { origin, time, name_at, payload: bytes.get(..len as usize)? })
}

fn power(kind: u32, mut bytes: &[u8]) -> PowerRecord {
    PowerRecord {
        kind,
        cpu: bytes.get_u32_ne(),
        time: bytes.get_u64_ne(),
        state: bytes.get_u32_ne(),
        lost: bytes.get_u32_ne(),
    }
}

fn process(kind: u32, mut bytes: &[u8]) -> ProcessRecord {
    ProcessRecord {
        kind,
        tgid: bytes.get_u32_ne(),
        tid: bytes.get_u32_ne(),
        detail: bytes.get_u32_ne(),
        time: bytes.get_u64_ne(),
    }
}

fn sched(kind: u32, mut bytes: &[u8]) -> SchedRecord {
    SchedRecord {
        kind,
        tid: bytes.get_u32_ne(),
        tgid: bytes.get_u32_ne(),
        cpu: bytes.get_u32_ne(),
        time: bytes.get_u64_ne(),
        change: bytes.get_u32_ne(),
        lost: bytes.get_u32_ne(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a record as the kernel lays them out.
    fn bytes<T: Copy>(value: &T) -> Vec<u8> {
        let start = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: the records have no padding, so every byte of the value is written.
        unsafe { std::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
    }

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
        };
        assert_eq!(record(&bytes(&span)), Some(Record::Span(span)));
        let idle = PowerRecord { kind: RecordKind::Idle as u32, cpu: 1, time: 2, state: 3, lost: 4 };
        assert_eq!(record(&bytes(&idle)), Some(Record::Idle(idle)));
        let exit = ProcessRecord { kind: RecordKind::Exit as u32, tgid: 1, tid: 2, detail: 3, time: 4 };
        assert_eq!(record(&bytes(&exit)), Some(Record::Exit(exit)));
        let sched = SchedRecord {
            kind: RecordKind::Sched as u32,
            tid: 1,
            tgid: 2,
            cpu: 3,
            time: 4,
            change: 5,
            lost: 6,
        };
        assert_eq!(record(&bytes(&sched)), Some(Record::Sched(sched)));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(record(&[]), None);
        assert_eq!(record(&[0; 24]), None);
        assert_eq!(record(&bytes(&(RecordKind::Span as u32))), None);
    }
}
