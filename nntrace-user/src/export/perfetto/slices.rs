//! Sections as slices: the packets at their begins and ends.

use std::{collections::BTreeMap, io::Write};

use nntrace_common::{
    attributes::{Attributes, Reserved},
    layer::Tag,
};

use super::packets::Packets;
use crate::{
    model::section::Section,
    perfetto_schema::{
        DebugAnnotation, EventType, TracePacket,
        own::{ACCOUNT, ATTRIBUTE, ATTRIBUTES, CLASS, ITERATION, LAYER_PHASE, MARK},
    },
};

/// Section that had not ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unfinished {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Begin, ns.
    pub(super) begin: u64,
    pub(super) name: String,
    /// Layer and phase, as written; `None` where they are not known.
    pub(super) tag: Option<Tag>,
}

/// Returns the packet of a section's begin.
pub(super) fn begin<W: Write>(packets: &mut Packets<W>, track: u64, section: &Section<'_>) -> TracePacket {
    let (layer, phase) = (section.tag.layer().code(), section.tag.phase().code());
    let mut annotations = vec![packets.text(LAYER_PHASE, &section.tag.to_string())];
    if let Some(class) = section.class_name() {
        annotations.push(packets.text(CLASS, class));
    }
    add_attributes(packets, &section.attributes, &mut annotations);
    let mut packet =
        packets.named_event(section.begin_ns, track, EventType::SliceBegin, &section.name, &[layer, phase]);
    if let Some(event) = &mut packet.track_event {
        event.debug_annotations = annotations;
    }
    packet
}

/// Returns the packet of the begin of a section that had not ended.
pub(super) fn unfinished<W: Write>(
    packets: &mut Packets<W>,
    track: u64,
    section: &Unfinished,
) -> TracePacket {
    let tag = section.tag.map(|tag| packets.text(LAYER_PHASE, &tag.to_string()));
    let mut packet = packets.named_event(section.begin, track, EventType::SliceBegin, &section.name, &[]);
    if let Some(event) = &mut packet.track_event {
        event.debug_annotations.extend(tag);
    }
    packet
}

/// Returns the packet of a mark that is no section: an instant with all of its text.
pub(super) fn mark<W: Write>(packets: &mut Packets<W>, track: u64, time: u64, payload: &str) -> TracePacket {
    // The name is behind the letter and the process.
    let name = payload.splitn(3, '|').nth(2).unwrap_or(payload);
    let name = name.split('#').next().unwrap_or(name);
    let text = packets.text(MARK, payload);
    let mut packet = packets.named_event(time, track, EventType::Instant, name, &[]);
    if let Some(event) = &mut packet.track_event {
        event.debug_annotations.push(text);
    }
    packet
}

/// Adds attributes: `iter` and `acct` by what they are, others behind `attribute.`. Of a key that occurs twice, the last
/// value counts. Where this loses something, the text of all of them is added.
fn add_attributes<W: Write>(packets: &mut Packets<W>, text: &str, annotations: &mut Vec<DebugAnnotation>) {
    if text.is_empty() {
        return;
    }
    let all = Attributes::of(text.as_bytes(), 0);
    let reserved = Reserved::read(all.clone());
    annotations.extend(reserved.iteration.map(|iteration| packets.number(ITERATION, iteration)));
    if let Some(account) = reserved.account {
        annotations.push(packets.text(ACCOUNT, &String::from_utf8_lossy(account)));
    }
    let others = all.clone().filter(|(key, _)| !matches!(*key, b"iter" | b"acct"));
    let others: BTreeMap<String, &[u8]> = others.map(|(key, value)| (annotation_key(key), value)).collect();
    let count = annotations_of(&reserved) + others.len();
    let is_lossy = all.clone().count() != count
        || all
            .clone()
            .any(|(key, value)| !key.iter().all(|byte| is_plain(*byte)) || str::from_utf8(value).is_err());
    if is_lossy {
        annotations.push(packets.text(ATTRIBUTES, text));
    }
    for (key, value) in others {
        annotations.push(packets.text(&key, &String::from_utf8_lossy(value)));
    }
}

/// Returns the number of annotations that reserved attributes have.
fn annotations_of(reserved: &Reserved<'_>) -> usize {
    usize::from(reserved.iteration.is_some()) + usize::from(reserved.account.is_some())
}

/// Returns the key of an attribute's annotation.
fn annotation_key(key: &[u8]) -> String {
    let key = key.iter().map(|byte| if is_plain(*byte) { char::from(*byte) } else { '_' });
    ATTRIBUTE.chars().chain(key).collect()
}

/// Whether queries of arguments know a character in keys.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}
