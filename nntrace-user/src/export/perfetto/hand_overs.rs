//! Hand-overs of work: an instant where it was sent, one where it was taken, and a flow from one to the other.
//!
//! A flow goes between slices in the order of their begins. The section that takes work may have begun before the one that
//! sends it, so flows are between instants in them.

use std::{collections::BTreeMap, io::Write};

use nntrace_common::attributes::Handle;

use super::{
    messages::{EventType, TracePacket, TrackEvent},
    packets::Packets,
    tracks,
};
use crate::model::{
    Findings,
    causality::hand_over_list::{HandOver, Moment},
};

/// Category of these instants.
const CATEGORY: &str = "hand_over";

/// Writes all that were taken. Work may be taken several times.
pub(super) fn write<W: Write>(findings: &Findings<'_>, packets: &mut Packets<W>) {
    let all = findings.marks.causality.hand_over_list.all();
    let mut sent: BTreeMap<(u32, u32, u64, Handle), Vec<u64>> = BTreeMap::new();
    for (flow, HandOver { handle, sent: Moment { pid, tid, time }, .. }) in (1..).zip(all) {
        sent.entry((*pid, *tid, *time, *handle)).or_default().push(flow);
    }
    for ((pid, tid, time, handle), flows) in sent {
        let packet = instant(Moment { pid, tid, time }, "nn.send", handle, packets);
        packets.put(&with(packet, |event| event.flow_ids = flows));
    }
    for (flow, hand_over) in (1..).zip(all) {
        let packet = instant(hand_over.received, "nn.recv", hand_over.handle, packets);
        let latency = hand_over.received.time.saturating_sub(hand_over.sent.time);
        let latency = packets.number("latency_ns", latency);
        packets.put(&with(packet, |event| {
            event.debug_annotations.push(latency);
            event.terminating_flow_ids = vec![flow];
        }));
    }
}

fn instant<W: Write>(at: Moment, name: &str, handle: Handle, packets: &mut Packets<W>) -> TracePacket {
    let (Handle::OfProcess(number) | Handle::OfSystem(number)) = handle;
    let handle = packets.number("handle", number);
    let track = tracks::thread_uuid(at.pid, at.tid);
    let packet = packets.named_event(at.time, track, EventType::Instant, name, &[CATEGORY]);
    with(packet, |event| event.debug_annotations.push(handle))
}

fn with(mut packet: TracePacket, change: impl FnOnce(&mut TrackEvent)) -> TracePacket {
    if let Some(event) = &mut packet.track_event {
        change(event);
    }
    packet
}
