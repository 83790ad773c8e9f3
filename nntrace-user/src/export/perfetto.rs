//! Traces of Perfetto: swimlanes, and events of CPUs. `docs/perfetto.md` lists what they show.
//!
//! Messages are structures with the fields that are written, encoded by the crate `prost`: it is small, needs no compiler
//! of schemas, and reads in tests what was written. The crates with all of Perfetto's schema take minutes to compile.
//!
//! A trace is its head, which describes clocks and tracks, and the events after it.

mod device_events;
mod kernel_events;
mod packets;
#[cfg(test)]
mod tests;
mod tracks;

use std::io::{self, Write};

use bytes::Bytes;
use nntrace_common::record::Record;

use self::{
    kernel_events::KernelEvents,
    packets::{Packets, event, write_packet},
};
use super::{
    ThreadName,
    swimlane::{self, Clocks, CounterValue, Counters, Encode, EventOfDevice, Label, ThreadTrack},
};
use crate::{
    model::Findings,
    perfetto_schema::{
        BOOTTIME, Clock, ClockSnapshot, EventType, MONOTONIC, REALTIME, TraceAttribute, TraceAttributes,
        TracePacket,
        own::{OwnRun, POWER, PowerFacts, RUN, WINDOW_BEGIN, WINDOW_END},
    },
};

/// Format of Perfetto's traces.
#[derive(Clone, Copy, Debug)]
pub struct Format;

impl swimlane::Format for Format {
    type Encoder<W: Write> = Encoder<W>;

    fn write_head(
        out: &mut impl Write,
        findings: &Findings<'_>,
        clocks: Option<&Clocks>,
        threads: &[ThreadName],
        counters: &Counters<'_>,
    ) -> io::Result<()> {
        write_head(out, findings, clocks, threads, counters)
    }

    fn write_tail(
        _: &mut impl Write,
        _: &Findings<'_>,
        _: Option<&Clocks>,
        _: &[ThreadName],
        _: &Counters<'_>,
    ) -> io::Result<()> {
        Ok(())
    }
}

/// Encoder of events as packets.
pub struct Encoder<W> {
    packets: Packets<W>,
    kernel_events: KernelEvents,
    /// Last track, and its number.
    last: Option<(ThreadTrack, u64)>,
}

impl<W> Encoder<W> {
    /// Returns the number of a track; events of one come together.
    fn uuid(&mut self, track: ThreadTrack) -> u64 {
        match self.last {
            Some((last, uuid)) if last == track => uuid,
            _ => self.last.insert((track, tracks::thread_uuid(track))).1,
        }
    }
}

impl<W: Write> Encode<W> for Encoder<W> {
    fn new(out: W, clocks: Option<&Clocks>) -> Self {
        let to_boottime =
            clocks.map_or(0, |clocks| clocks.boottime_ns.wrapping_sub(clocks.monotonic_ns).cast_signed());
        Self {
            packets: Packets::new(out, clocks.map(|_| MONOTONIC)),
            kernel_events: KernelEvents::new(to_boottime),
            last: None,
        }
    }

    fn further_track(&mut self, track: ThreadTrack) {
        self.packets.put(&tracks::further(track));
    }

    fn begin(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        let track = self.uuid(track);
        self.packets.put_begin(time, track, label);
    }

    fn end(&mut self, time: u64, track: ThreadTrack) {
        let track = self.uuid(track);
        self.packets.put_end(time, track);
    }

    fn instant(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        let track = self.uuid(track);
        self.packets.put_labelled(time, track, EventType::Instant, label);
    }

    fn counter(&mut self, time: u64, name: &str, value: CounterValue) {
        let mut packet = event(time, tracks::counter_uuid(name), EventType::Counter);
        if let Some(event) = &mut packet.track_event {
            match value {
                CounterValue::Whole(value) => event.counter_value = Some(value),
                CounterValue::Real(value) => event.double_counter_value = Some(value),
            }
        }
        self.packets.put(&packet);
    }

    fn power(&mut self, record: &Record) {
        self.kernel_events.take(record, &mut self.packets);
    }

    fn device(&mut self, event: &EventOfDevice<'_>) {
        self.kernel_events.device(event, &mut self.packets);
    }

    fn finish(self) -> io::Result<W> {
        let Self { mut packets, kernel_events, .. } = self;
        kernel_events.finish(&mut packets);
        packets.finish()
    }
}

/// Writes the head of a trace. Without clocks, times are of a clock that the importer takes for its own.
///
/// # Errors
/// When it cannot be written.
fn write_head(
    out: &mut impl Write,
    findings: &Findings<'_>,
    clocks: Option<&Clocks>,
    threads: &[ThreadName],
    counters: &Counters<'_>,
) -> io::Result<()> {
    if let Some(Clocks { monotonic_ns, boottime_ns, realtime_ns }) = clocks {
        let clocks = [(REALTIME, realtime_ns), (MONOTONIC, monotonic_ns), (BOOTTIME, boottime_ns)];
        let clock =
            |(id, time): (u32, &u64)| Clock { id: Some(id), timestamp: Some(*time), ..Clock::default() };
        let snapshot = ClockSnapshot {
            clocks: clocks.map(clock).into(),
            // Times that people and queries see are those of all other results.
            primary_trace_clock: Some(MONOTONIC),
        };
        let packet = TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() };
        write_packet(out, &packet, &mut Vec::new())?;
    }
    write_packet(out, &attributes(findings)?, &mut Vec::new())?;
    tracks::write(out, findings, threads, counters)
}

/// Returns the packet of the facts that no event shows, by which a replay has the same results.
fn attributes(findings: &Findings<'_>) -> io::Result<TracePacket> {
    let number = |key: &str, value: u64| TraceAttribute {
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        long_value: Some(value.cast_signed()),
        string_value: None,
    };
    let json = |key: &'static str, json: serde_json::Result<Vec<u8>>| {
        io::Result::Ok(TraceAttribute {
            key: Some(Bytes::from_static(key.as_bytes())),
            long_value: None,
            string_value: Some(json?.into()),
        })
    };
    let window = &findings.run.window;
    let run = OwnRun { host: findings.run.host.clone(), drivers: findings.marks.drivers() };
    let mut attribute = vec![
        number(WINDOW_BEGIN, window.begin_ns),
        number(WINDOW_END, window.end_ns),
        json(RUN, serde_json::to_vec(&run))?,
    ];
    if !findings.sums.cpus.is_empty() {
        let facts =
            PowerFacts { topology: findings.topology.clone(), initial: findings.initial_state.clone() };
        attribute.push(json(POWER, serde_json::to_vec(&facts))?);
    }
    let trace_attributes = Some(TraceAttributes { attribute });
    Ok(TracePacket { trace_attributes, ..TracePacket::default() })
}
