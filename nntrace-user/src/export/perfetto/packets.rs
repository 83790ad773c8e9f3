//! Packets of a trace, written one by one, with the texts that they share.

use std::io::{self, Write};

use bytes::Bytes;
use prost::{Message as _, encoding};
use rustc_hash::FxHashMap;

use crate::{
    export::swimlane::{Flow, Label, Value},
    perfetto_schema::{
        DebugAnnotation, EventType, InternedData, InternedName, NEEDS_STATE, PACKET, STATE_CLEARED,
        TracePacket, TracePacketDefaults, TrackEvent,
    },
};

/// Sequence that all events on tracks are of.
const SEQUENCE: u32 = 1;

/// Field of a packet's time.
const TIMESTAMP: u32 = 8;

/// Texts of one kind that are interned at most; later ones are written out.
const MOST_TEXTS: usize = 1 << 16;
/// Bytes of a text that is interned at most.
const LONGEST_TEXT: usize = 256;
/// Packets that are kept to be written again at most.
const MOST_KEPT: usize = 1 << 14;

/// Writer of packets.
pub(super) struct Packets<W> {
    out: W,
    buffer: Vec<u8>,
    categories: Texts,
    names: Texts,
    keys: Texts,
    values: Texts,
    /// Packets that end a slice, without their times, by track.
    ends: FxHashMap<u64, Vec<u8>>,
    /// Packets that begin one, without their times, by what they show.
    begins: FxHashMap<Box<[u8]>, Vec<u8>>,
    /// Key of the last of these.
    key: Vec<u8>,
    /// First failure; nothing is written after it.
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
            ends: FxHashMap::default(),
            begins: FxHashMap::default(),
            key: Vec::new(),
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

    /// Begins a slice of a track at a time (ns). Many are alike but for their times: the rest of them is encoded once.
    pub(super) fn put_begin(&mut self, time: u64, track: u64, label: &Label<'_>) {
        if !write_key(&mut self.key, track, label) {
            self.put_labelled(time, track, EventType::SliceBegin, label);
            return;
        }
        if let Some(rest) = self.begins.get(&*self.key) {
            write_rest(time, rest, &mut self.buffer, &mut self.out, &mut self.failure);
            return;
        }
        let begin = TracePacket { timestamp: None, ..self.labelled(0, track, EventType::SliceBegin, label) };
        let rest = begin.encode_to_vec();
        write_rest(time, &rest, &mut self.buffer, &mut self.out, &mut self.failure);
        if self.begins.len() < MOST_KEPT {
            self.begins.insert(self.key.as_slice().into(), rest);
        }
    }

    /// Writes an event with its name, categories, arguments and flows.
    pub(super) fn put_labelled(&mut self, time: u64, track: u64, what: EventType, label: &Label<'_>) {
        let packet = self.labelled(time, track, what, label);
        self.put(&packet);
    }

    /// Returns an event with its name, categories, arguments and flows.
    fn labelled(&mut self, time: u64, track: u64, what: EventType, label: &Label<'_>) -> TracePacket {
        let name_iid = self.name(&label.name);
        let categories = label.categories.iter();
        let category_iids = categories.filter_map(|category| self.category(category)).collect();
        let arguments = label.arguments.iter();
        let debug_annotations = arguments.map(|(key, value)| self.annotation(key, value)).collect();
        let mut packet = event(time, track, what);
        if let Some(event) = &mut packet.track_event {
            event.name_iid = name_iid;
            event.name = name_iid.is_none().then(|| bytes(&label.name));
            event.category_iids = category_iids;
            event.debug_annotations = debug_annotations;
            for flow in &label.flows {
                match flow {
                    Flow::Begin(number) => event.flow_ids.push(*number),
                    Flow::End(number) => event.terminating_flow_ids.push(*number),
                }
            }
        }
        packet
    }

    /// Ends the innermost slice of a track at a time (ns). Every second packet is one, and those of a track differ in their times
    /// only: the rest of them is encoded once.
    pub(super) fn put_end(&mut self, time: u64, track: u64) {
        let Self { buffer, ends, out, failure, .. } = self;
        let rest = ends.entry(track).or_insert_with(|| {
            let end = TracePacket { timestamp: None, ..event(0, track, EventType::SliceEnd) };
            end.encode_to_vec()
        });
        write_rest(time, rest, buffer, out, failure);
    }

    /// Returns an argument as an annotation.
    fn annotation(&mut self, key: &str, value: &Value<'_>) -> DebugAnnotation {
        let name_iid = self.key(key);
        let name = name_iid.is_none().then(|| bytes(key));
        let annotation = DebugAnnotation { name_iid, name, ..DebugAnnotation::default() };
        match value {
            Value::Number(number) => DebugAnnotation { uint_value: Some(*number), ..annotation },
            Value::Text(text) => {
                let string_value_iid = self.value(text);
                let string_value = string_value_iid.is_none().then(|| bytes(text));
                DebugAnnotation { string_value, string_value_iid, ..annotation }
            }
        }
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

/// Writes a packet of a time (ns), which is the first of its fields, and this rest.
#[inline]
fn write_rest(
    time: u64,
    rest: &[u8],
    buffer: &mut Vec<u8>,
    out: &mut impl Write,
    failure: &mut Option<io::Error>,
) {
    buffer.clear();
    buffer.push(PACKET);
    let time_len = encoding::uint64::encoded_len(TIMESTAMP, &time);
    encoding::encode_varint((time_len + rest.len()) as u64, buffer);
    encoding::uint64::encode(TIMESTAMP, &time, buffer);
    buffer.extend_from_slice(rest);
    if failure.is_none() {
        *failure = out.write_all(buffer).err();
    }
}

/// Writes a key that only slices have which are alike but for their times; returns whether there may be others like this one:
/// flows and numbers differ from slice to slice.
fn write_key(key: &mut Vec<u8>, track: u64, label: &Label<'_>) -> bool {
    key.clear();
    key.extend_from_slice(&track.to_le_bytes());
    let mut push = |text: &str| {
        key.extend_from_slice(&text.len().to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    };
    push(&label.name);
    label.categories.iter().for_each(|category| push(category));
    for (name, value) in &label.arguments {
        let Value::Text(value) = value else { return false };
        push(name);
        push(value);
    }
    label.flows.is_empty() && key.len() <= LONGEST_TEXT
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
