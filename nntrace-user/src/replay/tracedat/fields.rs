//! Decoding of records into events.

use std::io::Write as _;

use rustc_hash::FxHashMap;

use super::{
    bytes::{Endian, Word},
    formats::{Field, Format, Kind},
    saved_names::{Symbols, Texts},
};
use crate::replay::{
    driver_marks::{self, Value},
    ftrace::EventKind,
    kernel_events,
};

/// Events with names of threads: fields of the thread, and of its name. trace-cmd learns from the same.
const COMM_FIELDS: [(&[u8], &[u8], &[u8]); 4] = [
    (b"sched_switch", b"prev_pid", b"prev_comm"),
    (b"sched_switch", b"next_pid", b"next_comm"),
    (b"sched_wakeup", b"pid", b"comm"),
    (b"sched_wakeup_new", b"pid", b"comm"),
];

/// Name of records in unknown formats.
const UNKNOWN: &[u8] = b"unknown";

/// Decoders of all events of a file.
#[derive(Clone, Debug)]
pub(crate) struct Decoders {
    endian: Endian,
    /// Number of the event.
    id: Word,
    /// Thread of the event.
    tid: Word,
    all: FxHashMap<u16, Decoder>,
    /// Events with names of threads: number, thread, name.
    comm_fields: Vec<(u16, Word, Word)>,
}

#[derive(Clone, Debug)]
enum Decoder {
    Print {
        address: Word,
        text: usize,
    },
    CpuIdle {
        state: Word,
        cpu: Word,
    },
    CpuFrequency {
        khz: Word,
        cpu: Word,
    },
    /// Event that a replay reads by its fields.
    Known {
        name: Box<[u8]>,
        fields: Vec<Field>,
    },
    /// Mark of a driver.
    DriverMark(Vec<Field>),
    Other(Box<[u8]>),
}

impl Decoders {
    /// Creates the decoders for these formats, the first list being ftrace's own. `None` where none has the fields
    /// common to all events.
    pub(crate) fn new(endian: Endian, own: Vec<Format>, events: Vec<Format>) -> Option<Self> {
        let common = |name: &[u8]| own.iter().chain(&events).find_map(|format| format.number(name));
        let (id, tid) = (common(b"common_type")?, common(b"common_pid")?);
        let comm_fields = events.iter().flat_map(|format| {
            COMM_FIELDS.iter().filter_map(|(name, tid, comm)| {
                let comm = format.field(comm).filter(|comm| comm.kind == Kind::Text)?;
                (*format.name == **name).then_some((format.id, format.number(tid)?, comm.word))
            })
        });
        let comm_fields = comm_fields.collect();
        let own = own.into_iter().map(|format| (format.id, Decoder::of_ftrace(format)));
        let events = events.into_iter().map(|format| (format.id, Decoder::new(format)));
        Some(Self { endian, id, tid, all: events.chain(own).collect(), comm_fields })
    }

    /// Passes the threads whose names are in a record to `learn`.
    #[inline]
    pub(crate) fn threads(&self, record: &[u8], mut learn: impl FnMut(u32, &[u8])) {
        let Some(id) = self.id.read(record, self.endian) else { return };
        for (_, tid, comm) in self.comm_fields.iter().filter(|comm_fields| u64::from(comm_fields.0) == id) {
            let text = record.get(comm.offset..).and_then(|text| text.get(..comm.size));
            if let (Some(tid), Some(text)) = (tid.read(record, self.endian), text) {
                learn(tid as u32, until_nul(text));
            }
        }
    }

    /// Decodes a record into its thread and its kind, with `text` as a buffer for the fields. A record that is too
    /// short is of an unknown kind.
    #[inline]
    pub(crate) fn decode<'a>(
        &'a self,
        record: &'a [u8],
        symbols: &Symbols,
        texts: &Texts,
        text: &'a mut Vec<u8>,
    ) -> (u32, EventKind<'a>) {
        let tid = self.tid.read(record, self.endian).unwrap_or(0) as u32;
        let id = self.id.read(record, self.endian).and_then(|id| self.all.get(&(id as u16)));
        let kind = id.and_then(|decoder| decoder.decode(record, self.endian, symbols, texts, text));
        (tid, kind.unwrap_or(EventKind::Other { name: UNKNOWN, fields: b"" }))
    }
}

impl Decoder {
    fn new(format: Format) -> Self {
        let pair = |state: &[u8]| Some((format.number(state)?, format.number(b"cpu_id")?));
        match &*format.name {
            b"cpu_idle" if let Some((state, cpu)) = pair(b"state") => Self::CpuIdle { state, cpu },
            b"cpu_frequency" if let Some((khz, cpu)) = pair(b"state") => Self::CpuFrequency { khz, cpu },
            driver_marks::NAME => Self::DriverMark(format.fields),
            name if kernel_events::row_of(name).is_some() => {
                let Format { name, mut fields, .. } = format;
                fields.retain(|field| !field.name.starts_with(b"common_"));
                Self::Known { name, fields }
            }
            _ => Self::Other(format.name),
        }
    }

    /// Creates the decoder of one of ftrace's own formats.
    fn of_ftrace(format: Format) -> Self {
        match (&*format.name, format.number(b"ip"), format.field(b"buf")) {
            (b"print", Some(address), Some(text)) => Self::Print { address, text: text.word.offset },
            _ => Self::Other(format.name),
        }
    }

    #[inline]
    fn decode<'a>(
        &'a self,
        record: &'a [u8],
        endian: Endian,
        symbols: &Symbols,
        texts: &Texts,
        text: &'a mut Vec<u8>,
    ) -> Option<EventKind<'a>> {
        let number = |word: Word| word.read(record, endian).map(|number| number as u32);
        Some(match self {
            Self::Print { address, text } => {
                let payload = until_nul(record.get(*text..)?);
                let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
                if symbols.writes_marks(address.read(record, endian)?) {
                    EventKind::Mark(payload)
                } else {
                    EventKind::Other { name: b"print", fields: payload }
                }
            }
            Self::CpuIdle { state, cpu } => match (number(*state), number(*cpu)) {
                (Some(state), Some(cpu)) => EventKind::CpuIdle { state, cpu },
                _ => EventKind::Other { name: b"cpu_idle", fields: b"" },
            },
            Self::CpuFrequency { khz, cpu } => match (number(*khz), number(*cpu)) {
                (Some(khz), Some(cpu)) => EventKind::CpuFrequency { khz, cpu },
                _ => EventKind::Other { name: b"cpu_frequency", fields: b"" },
            },
            Self::DriverMark(fields) => {
                text.clear();
                let of = |name: &str| {
                    let field = fields.iter().find(|field| *field.name == *name.as_bytes())?;
                    Some(match field.text(record, endian, texts) {
                        Some(text) => Value::Text(text),
                        None => Value::Number(field.number(record, endian)?),
                    })
                };
                match driver_marks::write(text, of) {
                    Some(()) => EventKind::Mark(text),
                    None => EventKind::Other { name: driver_marks::NAME, fields: b"" },
                }
            }
            Self::Known { name, fields } => {
                format(fields, record, endian, texts, text);
                EventKind::Other { name, fields: text }
            }
            Self::Other(name) => EventKind::Other { name, fields: b"" },
        })
    }
}

/// Formats fields as `NAME=VALUE`, separated by blanks: numbers in decimal, text as it is, several numbers as the
/// hexadecimal digits of their bytes. Fields outside of the record are left out.
fn format(fields: &[Field], record: &[u8], endian: Endian, texts: &Texts, out: &mut Vec<u8>) {
    out.clear();
    for field in fields {
        let start = out.len();
        if start > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(&field.name);
        out.push(b'=');
        if value(field, record, endian, texts, out).is_none() {
            out.truncate(start);
        }
    }
}

fn value(field: &Field, record: &[u8], endian: Endian, texts: &Texts, out: &mut Vec<u8>) -> Option<()> {
    let Word { offset, size, signed } = field.word;
    if let Some(text) = field.text(record, endian, texts) {
        out.extend_from_slice(text);
    } else if field.kind == Kind::Array {
        for byte in record.get(offset..)?.get(..size)? {
            write!(out, "{byte:02x}").ok()?;
        }
    } else {
        let number = field.number(record, endian)?;
        if signed {
            write!(out, "{number}").ok()?;
        } else {
            write!(out, "{}", number.cast_unsigned()).ok()?;
        }
    }
    Some(())
}

impl Field {
    /// Returns the text of a field that has one.
    fn text<'a>(&self, record: &'a [u8], endian: Endian, texts: &'a Texts) -> Option<&'a [u8]> {
        let Word { offset, size, .. } = self.word;
        let from_here = record.get(offset..)?;
        match self.kind {
            Kind::Number | Kind::Array => None,
            Kind::Pointer => texts.get(self.word.read(record, endian)?),
            Kind::Text => Some(until_nul(if size == 0 { from_here } else { from_here.get(..size)? })),
            Kind::TextElsewhere { is_relative } => {
                let place = endian.u32(record, offset)? as usize;
                let base = if is_relative { offset.saturating_add(size) } else { 0 };
                let start = (place & 0xffff).saturating_add(base);
                Some(until_nul(record.get(start..)?.get(..place >> 16)?))
            }
        }
    }

    /// Returns the number of a field that has one: its bits, where it is unsigned.
    fn number(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let is_number = matches!(self.kind, Kind::Number | Kind::Pointer);
        is_number.then(|| self.word.read(record, endian)).flatten().map(u64::cast_signed)
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}
