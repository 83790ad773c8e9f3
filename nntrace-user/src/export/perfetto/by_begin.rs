//! Sections of one thread after the other, in the order of their begins.
//!
//! The importer closes the innermost open slice of a track at each end, and takes events of one instant in the order of the
//! file. So ends are written, innermost first, before the begin of the next section that is not in them.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
};

use super::{
    messages::EventType,
    packets::{Packets, event},
    slices::{self, Unfinished},
    tracks,
};
use crate::model::section::Section;

/// Writer of sections that come by thread and begin.
#[derive(Default)]
pub(super) struct SectionsByBegin {
    threads: BTreeMap<(u32, u32), Thread>,
}

/// Thread with sections.
#[derive(Default)]
struct Thread {
    /// Number among threads, which may have had these ids one after the other.
    place: Option<u32>,
    /// Its tracks. The first one, its own, has all its sections, if they nest.
    lanes: Vec<Lane>,
    /// Sections that had not ended, in the order of their begins.
    unfinished: VecDeque<Unfinished>,
}

/// Track of a thread.
struct Lane {
    uuid: u64,
    /// Ends of the open sections, ns, and how many were open around each, the outermost first.
    open: Vec<(u64, u8)>,
}

impl Lane {
    /// Whether a section may begin here, after all before it that are over.
    fn accepts<W: Write>(&mut self, section: &Section<'_>, packets: &mut Packets<W>) -> bool {
        while let Some((end, depth)) = self.open.last() {
            // Sections may have no length: what has as many around it is beside it, whatever the times.
            if *depth < section.depth && section.end_ns <= *end {
                return true;
            }
            if *end > section.begin_ns {
                return false;
            }
            self.end_innermost(packets);
        }
        true
    }

    fn end_innermost<W: Write>(&mut self, packets: &mut Packets<W>) {
        if let Some((end, _)) = self.open.pop() {
            packets.put(&event(end, self.uuid, EventType::SliceEnd));
        }
    }
}

impl SectionsByBegin {
    /// Creates a writer that also writes the sections that had not ended, which are in the order of their begins.
    pub(super) fn new(unfinished: Vec<Unfinished>) -> Self {
        let mut threads: BTreeMap<(u32, u32), Thread> = BTreeMap::new();
        for section in unfinished {
            threads.entry((section.pid, section.tid)).or_default().unfinished.push_back(section);
        }
        Self { threads }
    }

    /// Takes the next section, of a thread with this number.
    pub(super) fn take<W: Write>(
        &mut self,
        section: &Section<'_>,
        place: Option<u32>,
        packets: &mut Packets<W>,
    ) {
        let (pid, tid) = (section.pid, section.tid);
        let thread = self.threads.entry((pid, tid)).or_default();
        if thread.place != place {
            thread.end(packets);
            thread.place = place;
        }
        thread.begin_unfinished(section.begin_ns, packets);
        let lanes = &mut thread.lanes;
        let accepts = |lane: &mut Lane| lane.accepts(section, packets);
        let place = lanes.iter_mut().position(accepts).unwrap_or(lanes.len());
        if place == lanes.len() {
            let number = place as u32;
            if number > 0 {
                packets.put(&tracks::lane(pid, tid, number));
            }
            lanes.push(Lane { uuid: tracks::lane_uuid(pid, tid, number), open: Vec::new() });
        }
        let lane = &mut lanes[place];
        let packet = slices::begin(packets, lane.uuid, section);
        packets.put(&packet);
        lane.open.push((section.end_ns, section.depth));
    }

    /// Writes what is left.
    pub(super) fn finish<W: Write>(self, packets: &mut Packets<W>) {
        for mut thread in self.threads.into_values() {
            thread.begin_unfinished(u64::MAX, packets);
            thread.end(packets);
        }
    }
}

impl Thread {
    /// Writes the sections that begin up to a time (ns), and never end: all that follow are in them.
    fn begin_unfinished<W: Write>(&mut self, until: u64, packets: &mut Packets<W>) {
        while let Some(section) = self.unfinished.pop_front_if(|section| section.begin <= until) {
            if let Some(own) = self.lanes.first_mut() {
                while own.open.last().is_some_and(|(end, _)| *end <= section.begin) {
                    own.end_innermost(packets);
                }
                // In one that ends it would have ended, too: the ends that follow would be taken for its own.
                if !own.open.is_empty() {
                    continue;
                }
            }
            let track = tracks::thread_uuid(section.pid, section.tid);
            let packet = slices::unfinished(packets, track, &section);
            packets.put(&packet);
        }
    }

    /// Writes the ends of all that is open.
    fn end<W: Write>(&mut self, packets: &mut Packets<W>) {
        for lane in &mut self.lanes {
            while !lane.open.is_empty() {
                lane.end_innermost(packets);
            }
        }
    }
}
