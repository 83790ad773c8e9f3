//! State of the sequences of packets: texts by number, defaults, and clocks that count from packet to packet.
//!
//! The writer of a sequence names what it has written before by numbers. Where packets are missing, the numbers mean nothing
//! until the writer starts over.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::{clocks::ClockId, tracks::thread_number};
use crate::perfetto_schema::{
    BOOTTIME, ClockSnapshot, InternedName, NEEDS_STATE, STATE_CLEARED, TracePacket,
};

/// Sequences that are kept at most.
const MOST_SEQUENCES: usize = 1 << 16;
/// Texts that are kept at most, of all sequences together, and their bytes.
const MOST_TEXTS: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// All sequences of a trace.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    all: FxHashMap<u32, Sequence>,
    /// Texts of all of them, and their bytes.
    texts: usize,
    bytes: usize,
    /// Texts that there was no room for.
    pub(super) left_out: u64,
}

/// Sequence of packets.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Whether its numbers have a meaning.
    is_valid: bool,
    /// Whether a packet of it came before.
    has_begun: bool,
    names: FxHashMap<u64, Bytes>,
    categories: FxHashMap<u64, Bytes>,
    keys: FxHashMap<u64, Bytes>,
    values: FxHashMap<u64, Bytes>,
    default_clock: Option<u32>,
    /// Track of events that name none.
    pub(super) default_track: Option<u64>,
    /// Process and thread of events on no track.
    pub(super) thread: Option<(u32, u32)>,
    counting: FxHashMap<u32, Counting>,
}

/// Clock of a sequence whose times have a unit of their own, or are differences.
#[derive(Clone, Copy, Debug)]
struct Counting {
    /// Last time, in its units.
    last: u64,
    unit_ns: u64,
    is_incremental: bool,
}

/// Effect of a packet on its sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Whether packets are missing before it.
    pub(super) is_after_loss: bool,
    /// Whether it cannot be understood, as its numbers have no meaning.
    pub(super) is_lost: bool,
}

impl Sequences {
    /// Returns a sequence.
    pub(super) fn get(&self, id: u32) -> Option<&Sequence> {
        self.all.get(&id)
    }

    /// Takes the state that a packet brings.
    pub(super) fn packet(&mut self, packet: &TracePacket) -> Arrival {
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        if !self.all.contains_key(&id) && self.all.len() >= MOST_SEQUENCES {
            return Arrival { is_lost: true, ..Arrival::default() };
        }
        let Self { all, texts, bytes, left_out } = self;
        let sequence = all.entry(id).or_default();
        let flags = packet.sequence_flags.unwrap_or(0);
        let mut arrival = Arrival::default();
        if packet.previous_packet_dropped.unwrap_or(0) != 0 {
            // Recorders also flag the first packet, which nothing may have come before.
            arrival.is_after_loss = sequence.has_begun;
            sequence.is_valid &= !sequence.has_begun;
        }
        sequence.has_begun = true;
        if is_cleared(packet) {
            for table in sequence.tables() {
                *texts -= table.len();
                *bytes -= table.values().map(Bytes::len).sum::<usize>();
                table.clear();
            }
            (sequence.default_clock, sequence.default_track) = (None, None);
            sequence.is_valid = true;
        }
        if flags & NEEDS_STATE != 0 && !sequence.is_valid {
            arrival.is_lost = true;
            return arrival;
        }
        if let Some(data) = &packet.interned_data {
            let lists = [
                &data.event_names,
                &data.event_categories,
                &data.debug_annotation_names,
                &data.debug_annotation_string_values,
            ];
            for (table, list) in sequence.tables().into_iter().zip(lists) {
                for InternedName { iid, name } in list {
                    let (Some(iid), Some(name)) = (iid, name) else { continue };
                    if *texts >= MOST_TEXTS || *bytes + name.len() > MOST_BYTES {
                        *left_out += 1;
                        continue;
                    }
                    // A copy: a part of a packet would keep all of it.
                    *bytes += name.len();
                    match table.insert(*iid, Bytes::copy_from_slice(name)) {
                        Some(former) => *bytes -= former.len(),
                        None => *texts += 1,
                    }
                }
            }
        }
        if let Some(defaults) = &packet.trace_packet_defaults {
            sequence.default_clock = defaults.timestamp_clock_id;
            sequence.default_track =
                defaults.track_event_defaults.as_ref().and_then(|defaults| defaults.track_uuid);
        }
        if let Some(thread) = &packet.thread_descriptor
            && let Some(tid) = thread.tid.map(thread_number)
        {
            let pid = thread.pid.and_then(|pid| u32::try_from(pid).ok());
            sequence.thread = Some((pid.unwrap_or(tid), tid));
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            sequence.snapshot(snapshot, id);
        }
        arrival
    }

    /// Returns the time of a packet on its own clock, ns; `None` without one.
    pub(super) fn time(&mut self, packet: &TracePacket) -> Option<(ClockId, u64)> {
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let time = packet.timestamp?;
        let Some(sequence) = self.all.get_mut(&id) else { return Some((ClockId::Global(BOOTTIME), time)) };
        let clock = packet.timestamp_clock_id.or(sequence.default_clock).unwrap_or(BOOTTIME);
        let Some(counting) = sequence.counting.get_mut(&clock) else {
            return Some((ClockId::new(clock, id), time));
        };
        counting.last = if counting.is_incremental { counting.last.checked_add(time)? } else { time };
        Some((ClockId::new(clock, id), counting.last.checked_mul(counting.unit_ns)?))
    }
}

/// Whether a packet clears the state of its sequence.
pub(super) fn is_cleared(packet: &TracePacket) -> bool {
    packet.sequence_flags.unwrap_or(0) & STATE_CLEARED != 0 || packet.incremental_state_cleared == Some(true)
}

impl Sequence {
    fn tables(&mut self) -> [&mut FxHashMap<u64, Bytes>; 4] {
        [&mut self.names, &mut self.categories, &mut self.keys, &mut self.values]
    }

    /// Takes the clocks whose times are no nanoseconds, or differences.
    fn snapshot(&mut self, snapshot: &ClockSnapshot, id: u32) {
        for clock in &snapshot.clocks {
            let Some(number) = clock.id else { continue };
            let (is_incremental, unit_ns) =
                (clock.is_incremental == Some(true), clock.unit_multiplier_ns.unwrap_or(1).max(1));
            if matches!(ClockId::new(number, id), ClockId::OfSequence(..)) && (is_incremental || unit_ns > 1)
            {
                let last = clock.timestamp.unwrap_or(0);
                self.counting.insert(number, Counting { last, unit_ns, is_incremental });
            }
        }
    }

    /// Returns the name of an event, given by number.
    pub(super) fn name(&self, iid: u64) -> Option<&Bytes> {
        self.names.get(&iid)
    }

    /// Returns a category.
    pub(super) fn category(&self, iid: u64) -> Option<&Bytes> {
        self.categories.get(&iid)
    }

    /// Returns the key of an annotation.
    pub(super) fn key(&self, iid: u64) -> Option<&Bytes> {
        self.keys.get(&iid)
    }

    /// Returns the text of an annotation.
    pub(super) fn value(&self, iid: u64) -> Option<&Bytes> {
        self.values.get(&iid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto_schema::{Clock, InternedData};

    fn packet(flags: u32, dropped: u32) -> TracePacket {
        TracePacket {
            trusted_packet_sequence_id: Some(1),
            sequence_flags: Some(flags),
            previous_packet_dropped: Some(dropped),
            ..TracePacket::default()
        }
    }

    #[test]
    fn numbers_mean_nothing_behind_a_loss_until_the_state_is_cleared() {
        let mut sequences = Sequences::default();
        let (fine, lost) = (Arrival::default(), Arrival { is_after_loss: false, is_lost: true });
        // It may have begun before the trace.
        assert_eq!(sequences.packet(&packet(NEEDS_STATE, 0)), lost);
        assert_eq!(sequences.packet(&packet(STATE_CLEARED | NEEDS_STATE, 0)), fine);
        let names = vec![InternedName { iid: Some(5), name: Some("f".into()) }];
        let data = InternedData { event_names: names, ..InternedData::default() };
        sequences.packet(&TracePacket { interned_data: Some(data), ..packet(NEEDS_STATE, 0) });
        assert_eq!(sequences.get(1).unwrap().name(5), Some(&Bytes::from("f")));
        assert_eq!(sequences.packet(&packet(NEEDS_STATE, 1)), Arrival { is_after_loss: true, is_lost: true });
        assert_eq!(sequences.packet(&packet(0, 0)), fine);
        assert_eq!(sequences.packet(&packet(STATE_CLEARED, 0)), fine);
        assert_eq!(sequences.get(1).unwrap().name(5), None);
        assert_eq!((sequences.texts, sequences.bytes), (0, 0));
    }

    #[test]
    fn the_first_packet_is_behind_no_loss() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.packet(&packet(STATE_CLEARED, 1)), Arrival::default());
        assert!(sequences.packet(&packet(STATE_CLEARED, 65)).is_after_loss);
    }

    #[test]
    fn times_may_be_differences_in_units_of_their_own() {
        let mut sequences = Sequences::default();
        let clock = Clock {
            id: Some(65),
            timestamp: Some(7),
            is_incremental: Some(true),
            unit_multiplier_ns: Some(1_000),
        };
        let snapshot = ClockSnapshot { clocks: vec![clock], primary_trace_clock: None };
        sequences.packet(&TracePacket { clock_snapshot: Some(snapshot), ..packet(STATE_CLEARED, 0) });
        let mut at = |timestamp, clock| {
            let packet =
                TracePacket { timestamp: Some(timestamp), timestamp_clock_id: Some(clock), ..packet(0, 0) };
            sequences.time(&packet)
        };
        let clock = ClockId::OfSequence(1, 65);
        assert_eq!(at(3, 65), Some((clock, 10_000)));
        assert_eq!(at(0, 65), Some((clock, 10_000)));
        assert_eq!(at(3, BOOTTIME), Some((ClockId::Global(BOOTTIME), 3)));
        assert_eq!(at(2, 65), Some((clock, 12_000)));
        assert_eq!(at(u64::MAX, 65), None);
    }
}
