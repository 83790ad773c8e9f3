//! Traces of Perfetto: what its recorder writes, what programs with its SDK write, and our own export.
//!
//! `framing` finds the packets of a file; `sequences` holds the state of those that one writer wrote, `clocks` brings their
//! times to one clock, `threads` and `tracks` are who they are about. `ftrace_bundles` and `track_events` make events of
//! them, which wait in `queue`; `unplaced` counts those without a time, `own_slices` and
//! `own_facts` read our own export.
//!
//! A file is read twice at least. First for what may come after the events that need it: descriptions of tracks and threads,
//! and snapshots of clocks. Its packets are in no order of time, so that nearly every file is sorted then, as any trace in
//! no order is (`event_order`).
//!
//! Source: `protos/perfetto/trace/`, and the documentation of Perfetto.

mod clocks;
mod framing;
mod ftrace_bundles;
mod other_events;
mod own_facts;
mod own_slices;
mod queue;
mod recorder_losses;
mod ring_begins;
mod sequences;
#[cfg(test)]
mod tests;
mod threads;
mod track_events;
mod tracks;
mod unplaced;

use std::io::Read;

pub(crate) use framing::is_perfetto;
pub(crate) use queue::NO_CPU;

use self::{
    clocks::{Clocks, Converter},
    framing::{Packets, Part},
    ftrace_bundles::Bundles,
    queue::{Place, Queue},
    recorder_losses::RecorderLosses,
    ring_begins::RingBegins,
    sequences::Sequences,
    threads::Threads,
    track_events::TrackEvents,
    tracks::Tracks,
    unplaced::Unplaced,
};
use super::{
    declared::Declared,
    ftrace::Event,
    losses::Loss,
    step::{Step, Steps},
    window_markers::RECORDER_START,
};
use crate::{
    model::plurals::one_or_many,
    perfetto_schema::{TracePacket, TrackEvent},
};

/// Damaged packets that are told one by one at most.
const MOST_NOTES: u64 = 8;

/// Contents of a file that its events need, wherever they are.
#[derive(Debug, Default)]
pub(crate) struct Perfetto {
    clocks: Clocks,
    threads: Threads,
    tracks: Tracks,
    losses: RecorderLosses,
    rings: RingBegins,
    declared: Declared,
}

impl Perfetto {
    /// Reads a file for everything but its events. Where that ends, so will they.
    pub(crate) fn open(reader: impl Read) -> Self {
        let mut contents = Self::default();
        let mut packets = Packets::new(reader);
        loop {
            match packets.next() {
                Part::Packet(packet) if is_of_this_machine(&packet) => contents.packet(&packet),
                Part::Packet(_) | Part::Damaged(_) => {}
                Part::Cut(_) | Part::End => return contents,
            }
        }
    }

    fn packet(&mut self, packet: &TracePacket) {
        if let Some(snapshot) = &packet.clock_snapshot {
            self.clocks.snapshot(snapshot, packet.trusted_packet_sequence_id.unwrap_or(0));
        }
        if let Some(bundle) = &packet.ftrace_events {
            self.clocks.bundle(bundle);
            self.rings.bundle(bundle);
        }
        if let Some(track) = &packet.track_descriptor {
            self.tracks.describe(track);
        }
        for attribute in packet.trace_attributes.iter().flat_map(|attributes| &attributes.attribute) {
            own_facts::take(attribute, &mut self.declared);
        }
        self.threads.packet(packet, true);
        self.losses.packet(packet);
    }

    /// Returns the name of the clock of its times.
    #[must_use]
    pub(crate) fn clock_name(&self) -> String {
        self.clocks.of_trace().name()
    }

    /// Returns what the trace declares; nothing for one that is none of our own.
    #[must_use]
    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Returns the events of the same file, read again.
    pub(crate) fn events<R: Read>(&self, reader: R) -> Events<'_, R> {
        let mut queue = Queue::default();
        self.losses.tell(&mut queue);
        let notes = [
            (u64::from(self.clocks.is_full), "snapshots of clocks"),
            (self.tracks.left_out, "descriptions of tracks"),
        ];
        for (count, what) in notes.into_iter().filter(|(count, _)| *count > 0) {
            queue.note(format!("{count} or more {what} are beyond what there is room for"));
        }
        Events {
            contents: self,
            packets: Packets::new(reader),
            converter: Converter::new(&self.clocks),
            threads: self.threads.clone(),
            sequences: Sequences::default(),
            bundles: Bundles::default(),
            on_tracks: TrackEvents::default(),
            unplaced: Unplaced::default(),
            queue,
            damaged: 0,
            elsewhere: 0,
            foreign: 0,
            has_ended: false,
        }
    }
}

/// Whether a packet is of the machine that the trace was recorded on: processes of others have the same numbers.
fn is_of_this_machine(packet: &TracePacket) -> bool {
    packet.machine_id.unwrap_or(0) == 0
}

/// Events of a file, as they come.
pub(crate) struct Events<'a, R> {
    contents: &'a Perfetto,
    packets: Packets<R>,
    converter: Converter<'a>,
    threads: Threads,
    sequences: Sequences,
    bundles: Bundles,
    on_tracks: TrackEvents,
    unplaced: Unplaced,
    queue: Queue,
    /// Packets that cannot be read.
    damaged: u64,
    /// Packets of other machines.
    elsewhere: u64,
    /// Packets of kernels that are not Linux, which are not read.
    foreign: u64,
    has_ended: bool,
}

impl<R: Read> Events<'_, R> {
    /// Reads the next part of the file.
    fn read(&mut self) {
        match self.packets.next() {
            Part::Packet(packet) if is_of_this_machine(&packet) => self.packet(&packet),
            Part::Packet(_) => self.elsewhere += 1,
            Part::Damaged(what) => {
                self.damaged += 1;
                self.queue.lost(Loss::OfNoCpu { events: 1 });
                if self.damaged <= MOST_NOTES {
                    self.queue.note(what);
                }
            }
            Part::Cut(why) => {
                self.queue.note(why);
                self.end();
            }
            Part::End => self.end(),
        }
    }

    fn packet(&mut self, packet: &TracePacket) {
        if sequences::is_cleared(packet) {
            self.on_tracks.clear(packet.trusted_packet_sequence_id.unwrap_or(0));
        }
        let arrival = self.sequences.packet(packet);
        if arrival.is_after_loss || arrival.is_lost {
            self.queue.lost(Loss::OfNoCpu { events: 1 });
        }
        if arrival.is_lost {
            return;
        }
        self.threads.packet(packet, false);
        if let Some(bundle) = &packet.ftrace_events {
            let mut context = ftrace_bundles::Context {
                threads: &self.threads,
                converter: &mut self.converter,
                unplaced: &mut self.unplaced,
                queue: &mut self.queue,
                rings: &self.contents.rings,
            };
            self.bundles.take(bundle, &mut context);
        }
        if let Some(event) = &packet.track_event {
            self.track_event(packet, event);
        }
        if packet.service_event.is_some_and(|event| event.tracing_started == Some(true)) {
            self.begin(packet);
        }
        self.foreign += u64::from(packet.is_of_generic_kernel());
    }

    /// Takes the time at which the recorder says that tracing began: the events before are left from earlier ones.
    fn begin(&mut self, packet: &TracePacket) {
        let Some((clock, time)) = self.sequences.time(packet) else { return };
        if let Some(time) = self.converter.convert(clock, time) {
            let place = Place { comm: b"", tid: 0, tgid: None, cpu: NO_CPU, time };
            self.queue.other(place, RECORDER_START, |_| {});
        }
    }

    fn track_event(&mut self, packet: &TracePacket, event: &TrackEvent) {
        let mut context = track_events::Context {
            tracks: &self.contents.tracks,
            threads: &self.threads,
            sequences: &mut self.sequences,
            converter: &mut self.converter,
            unplaced: &mut self.unplaced,
            queue: &mut self.queue,
            is_own: self.contents.declared.window.is_some(),
        };
        self.on_tracks.take(packet, event, &mut context);
    }

    /// Adds what is known at the end only.
    fn end(&mut self) {
        self.has_ended = true;
        let unplaced = self.unplaced.total();
        if unplaced > 0 {
            self.queue.lost(Loss::OfNoCpu { events: unplaced });
        }
        for note in self.unplaced.notes(self.converter.of_trace()) {
            self.queue.note(note);
        }
        let events = &self.on_tracks;
        let counts = [
            (self.damaged.saturating_sub(MOST_NOTES), ["more packet", "more packets"], "cannot be read"),
            (self.elsewhere, ["packet is", "packets are"], "from another machine: left out"),
            (
                self.foreign,
                ["packet of a generic kernel event is", "packets of generic kernel events are"],
                "not read (QNX, HarmonyOS and other kernels): only ftrace events and track events are",
            ),
            (self.sequences.left_out, ["text is", "texts are"], "beyond what there is room for"),
            (
                events.nameless,
                ["event has", "events have"],
                "a number instead of a name, with no text for it",
            ),
            (events.left_out, ["slice is", "slices are"], "beyond what there is room for at once"),
            (events.fractions, ["counter value is", "counter values are"], "not whole: left out"),
        ];
        for (count, [one, many], what) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            self.queue.note(format!("{count} {} {what}", one_or_many(count, one, many)));
        }
    }
}

impl<R: Read> Steps for Events<'_, R> {
    fn advance(&mut self) -> Step {
        loop {
            if let Some(step) = self.queue.advance() {
                return step;
            }
            if self.has_ended {
                return Step::End;
            }
            self.read();
        }
    }

    fn time(&self) -> u64 {
        self.queue.time()
    }

    fn event(&mut self) -> Option<Event<'_>> {
        self.queue.event()
    }
}
