//! Counters of clusters: the effective frequency, and the idle state.

use std::io::Write;

use super::{
    packets::{Packets, event},
    tracks::ClusterCounter,
};
use crate::{
    model::timeline::{CpuState, Timeline, Timelines},
    perfetto_schema::EventType,
};

/// Idle state of a cluster that is offline, or of which nothing is known.
const UNKNOWN: i64 = -1;

/// Writes a value at each change.
pub(super) fn write<W: Write>(timelines: &Timelines, packets: &mut Packets<W>) {
    for (name, timeline) in &timelines.clusters {
        write_counter(timeline, ClusterCounter::Frequency.uuid(name), frequency, packets);
        write_counter(timeline, ClusterCounter::Idle.uuid(name), idle_state, packets);
    }
}

fn write_counter<W: Write>(
    timeline: &Timeline,
    track: u64,
    value: fn(CpuState) -> i64,
    packets: &mut Packets<W>,
) {
    let mut last = None;
    timeline.visit(|begin, _, parts| {
        // Of a coarse timeline, what lasted longest: an order is not known.
        let Some((state, _)) = parts.iter().max_by_key(|(_, ns)| *ns) else { return };
        let value = value(*state);
        if last.replace(value) == Some(value) {
            return;
        }
        let mut packet = event(begin, track, EventType::Counter);
        if let Some(event) = &mut packet.track_event {
            event.counter_value = Some(value);
        }
        packets.put(&packet);
    });
}

/// Returns the frequency, kHz; 0 where it does not run, or the frequency is not known.
fn frequency(state: CpuState) -> i64 {
    match state {
        CpuState::Running(khz) => khz.unwrap_or(0).into(),
        _ => 0,
    }
}

/// Returns the idle state: 0 for none, otherwise one more than its number, as Perfetto's own tables count.
fn idle_state(state: CpuState) -> i64 {
    match state {
        CpuState::Running(_) => 0,
        CpuState::Idle(number) => i64::from(number) + 1,
        CpuState::IdleUnknown | CpuState::Offline | CpuState::Unknown => UNKNOWN,
    }
}
