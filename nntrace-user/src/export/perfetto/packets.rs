//! Packets of a trace, written one by one, with the texts that they share.

use std::io::{self, Write};

use bytes::Bytes;
use prost::Message as _;
use rustc_hash::FxHashMap;

use crate::perfetto_schema::{
    DebugAnnotation, EventType, InternedData, InternedName, NEEDS_STATE, PACKET, STATE_CLEARED, TracePacket,
    TracePacketDefaults, TrackEvent,
};

/// Sequence that all events on tracks are of.
const SEQUENCE: u32 = 1;

/// Texts of one kind that are interned at most; later ones are written out.
const MOST_TEXTS: usize = 1 << 16;
/// Bytes of a text that is interned at most.
const LONGEST_TEXT: usize = 256;

/// Writer of packets.
pub(super) struct Packets<W> {
    out: W,
    buffer: Vec<u8>,
    categories: Texts,
    names: Texts,
    keys: Texts,
    values: Texts,
    /// First failure; nothing is written behind it.
    failure: Option<io::Error>,
}

/// Texts of one kind, with their numbers, from 1.
#[derive(Default)]
struct Texts(FxHashMap<Box<str>, u64>);

impl Texts {
    /// Returns the number of a text, and whether it is new; `None` if it is to be written out.
    fn number(&mut self, text: &str) -> Option<(u64, bool)> {
        if let Some(number) = self.0.get(text) {
            return Some((*number, false));
        }
        if self.0.len() >= MOST_TEXTS || text.len() > LONGEST_TEXT {
            return None;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.into(), number);
        Some((number, true))
    }
}

impl<W: Write> Packets<W> {
    /// Begins the sequence of events, whose times are of the clock with this id, if one is given.
    pub(super) fn new(out: W, clock: Option<u32>) -> Self {
        let mut packets = Self {
            out,
            buffer: Vec::new(),
            categories: Texts::default(),
            names: Texts::default(),
            keys: Texts::default(),
            values: Texts::default(),
            failure: None,
        };
        packets.put(&TracePacket {
            sequence_flags: Some(STATE_CLEARED | NEEDS_STATE),
            trusted_packet_sequence_id: Some(SEQUENCE),
            trace_packet_defaults: Some(TracePacketDefaults {
                timestamp_clock_id: clock,
                ..TracePacketDefaults::default()
            }),
            ..TracePacket::default()
        });
        packets
    }

    /// Writes a packet. A failure shows at the end.
    pub(super) fn put(&mut self, packet: &TracePacket) {
        if self.failure.is_some() {
            return;
        }
        self.buffer.clear();
        self.failure = write_packet(&mut self.out, packet, &mut self.buffer).err();
    }

    /// Returns an event with a name and categories.
    pub(super) fn named_event(
        &mut self,
        time: u64,
        track: u64,
        what: EventType,
        name: &str,
        categories: &[&str],
    ) -> TracePacket {
        let name_iid = self.name(name);
        let category_iids = categories.iter().filter_map(|category| self.category(category)).collect();
        let mut packet = event(time, track, what);
        if let Some(event) = &mut packet.track_event {
            event.name_iid = name_iid;
            event.name = name_iid.is_none().then(|| bytes(name));
            event.category_iids = category_iids;
        }
        packet
    }

    /// Returns an annotation with a text.
    pub(super) fn text(&mut self, key: &str, value: &str) -> DebugAnnotation {
        let string_value_iid = self.value(value);
        let string_value = string_value_iid.is_none().then(|| bytes(value));
        DebugAnnotation { string_value, string_value_iid, ..self.annotation(key) }
    }

    /// Returns an annotation with a number.
    pub(super) fn number(&mut self, key: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { uint_value: Some(value), ..self.annotation(key) }
    }

    fn annotation(&mut self, key: &str) -> DebugAnnotation {
        let name_iid = self.key(key);
        let name = name_iid.is_none().then(|| bytes(key));
        DebugAnnotation { name_iid, name, ..DebugAnnotation::default() }
    }

    fn category(&mut self, text: &str) -> Option<u64> {
        let (number, is_new) = self.categories.number(text)?;
        if is_new {
            let event_categories = vec![interned(number, text)];
            self.intern(InternedData { event_categories, ..InternedData::default() });
        }
        Some(number)
    }

    fn name(&mut self, text: &str) -> Option<u64> {
        let (number, is_new) = self.names.number(text)?;
        if is_new {
            let event_names = vec![interned(number, text)];
            self.intern(InternedData { event_names, ..InternedData::default() });
        }
        Some(number)
    }

    fn key(&mut self, text: &str) -> Option<u64> {
        let (number, is_new) = self.keys.number(text)?;
        if is_new {
            let debug_annotation_names = vec![interned(number, text)];
            self.intern(InternedData { debug_annotation_names, ..InternedData::default() });
        }
        Some(number)
    }

    fn value(&mut self, text: &str) -> Option<u64> {
        let (number, is_new) = self.values.number(text)?;
        if is_new {
            let debug_annotation_string_values = vec![interned(number, text)];
            self.intern(InternedData { debug_annotation_string_values, ..InternedData::default() });
        }
        Some(number)
    }

    /// Writes a new text. At once: packets that have it may wait for others.
    fn intern(&mut self, texts: InternedData) {
        self.put(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDS_STATE),
            interned_data: Some(texts),
            ..TracePacket::default()
        });
    }

    /// Ends the packets; returns what they were written to.
    ///
    /// # Errors
    /// When one could not be written.
    pub(super) fn finish(self) -> io::Result<W> {
        self.failure.map_or(Ok(self.out), Err)
    }
}

/// Returns an event on a track.
pub(super) fn event(time: u64, track: u64, what: EventType) -> TracePacket {
    TracePacket {
        timestamp: Some(time),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NEEDS_STATE),
        track_event: Some(TrackEvent {
            r#type: Some(what.into()),
            track_uuid: Some(track),
            ..TrackEvent::default()
        }),
        ..TracePacket::default()
    }
}

/// Returns a text in the form that messages have.
fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn interned(iid: u64, text: &str) -> InternedName {
    InternedName { iid: Some(iid), name: Some(bytes(text)) }
}

/// Writes a packet, by way of an empty buffer.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_packet(
    out: &mut impl Write,
    packet: &TracePacket,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.push(PACKET);
    packet.encode_length_delimited(buffer).map_err(io::Error::other)?;
    out.write_all(buffer)
}
