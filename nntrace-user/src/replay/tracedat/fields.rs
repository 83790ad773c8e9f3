//! Decoding of records into events.

use std::io::Write as _;

use rustc_hash::FxHashMap;

use super::{
    bytes::{Endian, Word},
    formats::{Field, Format, Kind},
    saved_names::{Symbols, Texts},
};
use crate::replay::ftrace::EventKind;

/// Events whose fields may be read later. Formatting them costs more than everything else.
const TOLD: [&[u8]; 11] = [
    b"sched_switch",
    b"sched_waking",
    b"sched_wakeup",
    b"sched_wakeup_new",
    b"cpuhp_enter",
    b"cpuhp_exit",
    b"cpu_frequency_limits",
    b"suspend_resume",
    b"psci_domain_idle_enter",
    b"psci_domain_idle_exit",
    b"cpu_idle_miss",
];

/// Events with names of threads: fields of the thread, and of its name. trace-cmd learns from the same.
const TELLING: [(&[u8], &[u8], &[u8]); 4] = [
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
    telling: Vec<(u16, Word, Word)>,
}

#[derive(Clone, Debug)]
enum Decoder {
    Print { address: Word, text: usize },
    CpuIdle { state: Word, cpu: Word },
    CpuFrequency { khz: Word, cpu: Word },
    Told { name: Box<[u8]>, fields: Vec<Field> },
    Other(Box<[u8]>),
}

impl Decoders {
    /// Creates the decoders for these formats, the first list being ftrace's own. `None` where none has the fields
    /// common to all events.
    pub(crate) fn new(endian: Endian, own: Vec<Format>, events: Vec<Format>) -> Option<Self> {
        let common = |name: &[u8]| own.iter().chain(&events).find_map(|format| format.number(name));
        let (id, tid) = (common(b"common_type")?, common(b"common_pid")?);
        let telling = events.iter().flat_map(|format| {
            TELLING.iter().filter_map(|(name, tid, comm)| {
                let comm = format.field(comm).filter(|comm| comm.kind == Kind::Text)?;
                (*format.name == **name).then_some((format.id, format.number(tid)?, comm.word))
            })
        });
        let telling = telling.collect();
        let own = own.into_iter().map(|format| (format.id, Decoder::of_ftrace(format)));
        let events = events.into_iter().map(|format| (format.id, Decoder::new(format)));
        Some(Self { endian, id, tid, all: events.chain(own).collect(), telling })
    }

    /// Passes the threads whose names are in a record to `learn`.
    #[inline]
    pub(crate) fn threads(&self, record: &[u8], mut learn: impl FnMut(u32, &[u8])) {
        let Some(id) = self.id.read(record, self.endian) else { return };
        for (_, tid, comm) in self.telling.iter().filter(|telling| u64::from(telling.0) == id) {
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
            name if TOLD.contains(&name) => {
                let Format { name, mut fields, .. } = format;
                fields.retain(|field| !field.name.starts_with(b"common_"));
                Self::Told { name, fields }
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
            Self::CpuIdle { state, cpu } => EventKind::CpuIdle { state: number(*state)?, cpu: number(*cpu)? },
            Self::CpuFrequency { khz, cpu } => {
                EventKind::CpuFrequency { khz: number(*khz)?, cpu: number(*cpu)? }
            }
            Self::Told { name, fields } => {
                tell(fields, record, endian, texts, text);
                EventKind::Other { name, fields: text }
            }
            Self::Other(name) => EventKind::Other { name, fields: b"" },
        })
    }
}

/// Formats fields as `NAME=VALUE`, separated by blanks: numbers in decimal, text as it is, several numbers as the
/// hexadecimal digits of their bytes. Fields outside of the record are left out.
fn tell(fields: &[Field], record: &[u8], endian: Endian, texts: &Texts, out: &mut Vec<u8>) {
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
    let from_here = record.get(offset..)?;
    match field.kind {
        Kind::Number | Kind::Pointer => {
            let number = field.word.read(record, endian)?;
            match texts.get(number).filter(|_| field.kind == Kind::Pointer) {
                Some(text) => out.extend_from_slice(text),
                None if signed => write!(out, "{}", number.cast_signed()).ok()?,
                None => write!(out, "{number}").ok()?,
            }
        }
        Kind::Text => {
            let text = if size == 0 { from_here } else { from_here.get(..size)? };
            out.extend_from_slice(until_nul(text));
        }
        Kind::TextElsewhere { is_relative } => {
            let place = endian.u32(record, offset)? as usize;
            let start =
                (place & 0xffff).saturating_add(if is_relative { offset.saturating_add(size) } else { 0 });
            let text = record.get(start..)?.get(..place >> 16)?;
            out.extend_from_slice(until_nul(text));
        }
        Kind::Array => {
            for byte in from_here.get(..size)? {
                write!(out, "{byte:02x}").ok()?;
            }
        }
    }
    Some(())
}

fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}
