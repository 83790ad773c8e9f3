//! Sections as slices: the packets at their begins and ends.

use std::{collections::BTreeMap, io::Write};

use nntrace_common::attributes::{Attributes, Reserved};

use super::{
    messages::{DebugAnnotation, EventType, TracePacket},
    packets::Packets,
};
use crate::model::section::Section;

/// Section that had not ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unfinished {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Begin, ns.
    pub(super) begin: u64,
    pub(super) name: String,
}

/// Returns the packet of a section's begin.
pub(super) fn begin<W: Write>(packets: &mut Packets<W>, track: u64, section: &Section<'_>) -> TracePacket {
    let (layer, phase) = (section.tag.layer().code(), section.tag.phase().code());
    let mut annotations = vec![packets.text("layer_phase", &format!("{layer}_{phase}"))];
    if let Some(class) = section.class_name() {
        annotations.push(packets.text("class", class));
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
    packets.named_event(section.begin, track, EventType::SliceBegin, &section.name, &[])
}

/// Adds attributes: `iter` and `acct` by what they are, others behind `attribute.`. Of a key that occurs twice, the last
/// value counts.
fn add_attributes<W: Write>(packets: &mut Packets<W>, text: &str, annotations: &mut Vec<DebugAnnotation>) {
    if text.is_empty() {
        return;
    }
    let all = Attributes::of(text.as_bytes(), 0);
    let reserved = Reserved::read(all.clone());
    annotations.extend(reserved.iteration.map(|iteration| packets.number("iteration", iteration)));
    if let Some(account) = reserved.account {
        annotations.push(packets.text("account", &String::from_utf8_lossy(account)));
    }
    let others = all.filter(|(key, _)| !matches!(*key, b"iter" | b"acct"));
    let others: BTreeMap<String, &[u8]> = others.map(|(key, value)| (annotation_key(key), value)).collect();
    for (key, value) in others {
        annotations.push(packets.text(&key, &String::from_utf8_lossy(value)));
    }
}

/// Returns the key of an attribute's annotation. Queries of arguments know few characters in keys.
fn annotation_key(key: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let key = key.iter().map(|byte| if is_plain(byte) { char::from(*byte) } else { '_' });
    "attribute.".chars().chain(key).collect()
}
