//! Sections of all threads in the order of their ends, in bounded memory.
//!
//! The importer sorts events by time, so the begin of a section may be written at its end. Events of one instant it takes in
//! the order of the file: the begin of a section has to come before those of sections in it that begin at the same instant.
//! Only the first one in each open section can be such a section. So of each thread the first ones are kept, with what is
//! in them and begins at the same instant, until the section around them ends: at most one for each open section.

use std::io::Write;

use rustc_hash::FxHashMap;

use super::{
    messages::{EventType, TracePacket},
    packets::Packets,
    slices::{self, Unfinished},
    tracks,
};
use crate::model::section::Section;

/// Writer of sections that come in the order of their ends.
#[derive(Default)]
pub(super) struct SectionsByEnd {
    /// First sections in those that may be open, by thread, the outermost first.
    threads: FxHashMap<(u32, u32), Vec<First>>,
}

/// First section in one that may be open.
struct First {
    /// Sections around it.
    depth: u8,
    /// Begin, ns.
    begin: u64,
    /// Packet of its begin, and of what follows at the same instant.
    packets: Vec<TracePacket>,
}

impl SectionsByEnd {
    /// Takes the next section.
    pub(super) fn take<W: Write>(&mut self, section: &Section<'_>, packets: &mut Packets<W>) {
        let (begin, depth) = (section.begin_ns, section.depth);
        let track = tracks::thread_uuid(section.pid, section.tid);
        let firsts = self.threads.entry((section.pid, section.tid)).or_default();
        let is_inside = |first: &First| first.depth > depth && first.begin >= begin;
        let outside = firsts.iter().rposition(|first| !is_inside(first)).map_or(0, |last| last + 1);
        let mut here = vec![slices::begin(packets, track, section)];
        for first in firsts.drain(outside..) {
            if first.begin == begin {
                here.extend(first.packets);
            } else {
                first.packets.iter().for_each(|packet| packets.put(packet));
            }
        }
        let end = packets.event(section.end_ns, track, EventType::SliceEnd);
        let has_length = section.end_ns > begin;
        if !has_length {
            here.push(end.clone());
        }
        match firsts.last_mut() {
            // Not the first one: what is around both begins earlier than this, unless the first one has no length.
            Some(first) if first.depth >= depth && first.begin == begin => first.packets.extend(here),
            Some(first) if first.depth >= depth => here.iter().for_each(|packet| packets.put(packet)),
            // Nothing is around it.
            _ if depth == 0 => here.iter().for_each(|packet| packets.put(packet)),
            _ => firsts.push(First { depth, begin, packets: here }),
        }
        if has_length {
            packets.put(&end);
        }
    }

    /// Returns the threads with sections.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.threads.keys().copied()
    }

    /// Writes what is left, and sections that had not ended, which are sorted by thread and begin. What was kept is in them.
    pub(super) fn finish<W: Write>(self, unfinished: &[Unfinished], packets: &mut Packets<W>) {
        let mut left: Vec<((u32, u32), u64, Vec<TracePacket>)> = Vec::new();
        for section in unfinished {
            let track = tracks::thread_uuid(section.pid, section.tid);
            let begin = slices::unfinished(packets, track, section);
            left.push(((section.pid, section.tid), section.begin, vec![begin]));
        }
        for (thread, firsts) in self.threads {
            left.extend(firsts.into_iter().map(|first| (thread, first.begin, first.packets)));
        }
        // Stable: of one instant, those that had not ended come first.
        left.sort_by_key(|(thread, begin, _)| (*thread, *begin));
        left.iter().flat_map(|(.., all)| all).for_each(|packet| packets.put(packet));
    }
}
