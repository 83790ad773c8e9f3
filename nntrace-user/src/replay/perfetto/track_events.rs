//! Events on tracks: slices, instants and counters of programs, as the marks that they would have written.
//!
//! The slices of a thread's own track are its sections. Those of other tracks may overlap what the thread does, and are
//! asynchronous slices, paired by a number of their own. Our own export is read by its annotations (`own_slices`).

use std::collections::hash_map::Entry;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::{
    clocks::{Converter, END_OF_TIME},
    own_slices::{self, Own},
    queue::{NO_CPU, Place, Queue, append},
    sequences::{Sequence, Sequences},
    threads::Threads,
    tracks::{Owner, Tracks, thread_number, twin},
    unplaced::Unplaced,
};
use crate::perfetto_schema::{EventType, LegacyEvent, TracePacket, TrackEvent};

/// Slices that are open at most, on all tracks together.
const MOST_OPEN: usize = 1 << 20;
/// Counters whose values are kept at most.
const MOST_COUNTERS: usize = 1 << 16;

/// Slices that have not ended, and values of counters.
#[derive(Debug, Default)]
pub(super) struct TrackEvents {
    open: FxHashMap<TrackKey, Vec<Open>>,
    open_count: usize,
    /// Values of counters whose events have differences, by sequence and track: each writer counts from 0.
    values: FxHashMap<(u32, u64), Sum>,
    /// Names of open asynchronous slices in the form of Chrome, by process and id: their ends may have none.
    legacy: FxHashMap<(u32, u64), Vec<Bytes>>,
    /// Number of the last asynchronous slice.
    cookie: u64,
    /// Events whose name is not known, as its number has no text.
    pub(super) nameless: u64,
    /// Begins of slices that there was no room for.
    pub(super) left_out: u64,
    /// Counter values that are not whole.
    pub(super) fractions: u64,
}

/// Value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    whole: i64,
    fraction: f64,
}

impl Sum {
    /// Returns a value as a track event has it; `None` for one that is too large to be exact.
    fn of(event: &TrackEvent) -> Option<Self> {
        if let Some(whole) = event.counter_value {
            return Some(Self { whole, fraction: 0.0 });
        }
        let value = event.double_counter_value.filter(|value| value.abs() <= 9_007_199_254_740_992.0)?;
        Some(Self { whole: value.trunc() as i64, fraction: value.fract() })
    }

    /// Adds `other`, multiplied by `times`.
    fn add(self, other: Self, times: i64) -> Self {
        let sum = self.fraction + other.fraction * times as f64;
        // Ten tenths are not quite one.
        let sum = if (sum - sum.round()).abs() < 1e-9 { sum.round() } else { sum };
        let whole = self.whole.saturating_add(other.whole.saturating_mul(times));
        Self { whole: whole.saturating_add(sum.trunc() as i64), fraction: sum.fract() }
    }
}

/// Track of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TrackKey {
    Numbered(u64),
    /// Thread that the event itself is said to be of.
    Thread(u32, u32),
}

/// Slice that has not ended.
#[derive(Debug)]
enum Open {
    /// Section of a thread.
    Section,
    /// Slice that stands for no mark.
    Derived,
    Async {
        name: Bytes,
        cookie: u64,
    },
}

/// Effect of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Begin,
    End,
    /// A section of this many ns.
    Complete(u64),
    Instant,
    Counter,
    AsyncBegin(u64),
    AsyncEnd(u64),
}

/// Facts by which events are placed.
pub(super) struct Context<'a, 'b> {
    pub(super) tracks: &'a Tracks,
    pub(super) threads: &'a Threads,
    pub(super) sequences: &'a mut Sequences,
    pub(super) converter: &'a mut Converter<'b>,
    pub(super) unplaced: &'a mut Unplaced,
    pub(super) queue: &'a mut Queue,
    /// Whether the trace is an export of this program.
    pub(super) is_own: bool,
}

impl TrackEvents {
    /// Forgets the values that a sequence has counted: its writer begins again from 0.
    pub(super) fn clear(&mut self, sequence: u32) {
        self.values.retain(|(of, _), _| *of != sequence);
    }

    /// Takes the event of a packet.
    pub(super) fn take(&mut self, packet: &TracePacket, event: &TrackEvent, context: &mut Context<'_, '_>) {
        let Some((clock, time)) = context.sequences.time(packet) else {
            context.unplaced.add(context.converter.of_trace());
            return;
        };
        let Some(time) = context.converter.convert(clock, time) else {
            context.unplaced.add(clock);
            return;
        };
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let empty = Sequence::default();
        let sequence = context.sequences.get(id).unwrap_or(&empty);
        let Some(action) = action(event) else { return };
        let (key, owner) = owner_of(event, sequence, context.tracks);
        let name = match (&event.name, event.name_iid.or_else(|| event.legacy_event.as_ref()?.name_iid)) {
            (Some(name), _) => name.clone(),
            (None, Some(iid)) => sequence.name(iid).cloned().unwrap_or_else(|| {
                self.nameless += 1;
                Bytes::new()
            }),
            (None, None) => Bytes::new(),
        };
        let place = Place {
            // By it the process is named.
            comm: (context.tracks.process_name(owner.pid))
                .or_else(|| context.tracks.comm(event.track_uuid.or(sequence.default_track)?))
                .unwrap_or_else(|| context.threads.comm(owner.tid)),
            // What the kernel does with a thread of that id is another one's.
            tid: if context.threads.is_of_other(owner.pid, owner.tid) { twin(owner.tid) } else { owner.tid },
            tgid: Some(owner.pid),
            cpu: NO_CPU,
            time,
        };
        let queue = &mut *context.queue;
        match action {
            Action::Begin => {
                let own = own_slices::read(event, &name, sequence);
                self.begin(key, owner, place, &name, own, queue);
            }
            Action::End => self.end(key, owner, place, queue),
            Action::Complete(length) => {
                queue.mark(place, |out| begin(out, owner.pid, &name));
                // One that would end after all clocks do has not ended.
                if let Some(time) = time.checked_add(length).filter(|time| *time < END_OF_TIME) {
                    let place = Place { time, ..place };
                    queue.mark(place, |out| append(out, format_args!("E|{}", owner.pid)));
                }
            }
            Action::Instant => match own_slices::read(event, &name, sequence) {
                Own::Foreign => queue.mark(place, |out| {
                    append(out, format_args!("I|{}|", owner.pid));
                    out.extend_from_slice(&name);
                }),
                Own::Mark(text) => {
                    queue.mark(place, |out| out.extend_from_slice(&text));
                    // The begin of a section that counts for itself only.
                    if text.starts_with(b"B|") {
                        queue.mark(place, |out| append(out, format_args!("E|{}", owner.pid)));
                    }
                }
                Own::Section(_) | Own::Derived => {}
            },
            // The counters of an export are states of clusters, which follow from the events of CPUs.
            Action::Counter if context.is_own => {}
            Action::Counter => {
                if let Some(track) = event.track_uuid.or(sequence.default_track) {
                    self.counter(event, (id, track), owner, place, context.tracks, queue);
                }
            }
            Action::AsyncBegin(cookie) => {
                queue.mark(place, |out| asynchronous(out, b'S', owner.pid, &name, cookie));
                self.legacy_begins(owner.pid, cookie, name);
            }
            Action::AsyncEnd(cookie) => {
                let name = self.legacy_ends(owner.pid, cookie, name);
                queue.mark(place, |out| asynchronous(out, b'F', owner.pid, &name, cookie));
            }
        }
    }

    fn begin(
        &mut self,
        key: TrackKey,
        owner: Owner,
        place: Place<'_>,
        name: &Bytes,
        own: Own,
        queue: &mut Queue,
    ) {
        if self.open_count >= MOST_OPEN {
            self.left_out += 1;
            return;
        }
        let open = match own {
            Own::Derived | Own::Mark(_) => Open::Derived,
            Own::Section(text) if owner.is_of_thread => {
                queue.mark(place, |out| begin(out, owner.pid, &text));
                Open::Section
            }
            Own::Foreign if owner.is_of_thread => {
                queue.mark(place, |out| begin(out, owner.pid, name));
                Open::Section
            }
            Own::Section(_) | Own::Foreign => {
                self.cookie += 1;
                let cookie = self.cookie;
                queue.mark(place, |out| asynchronous(out, b'S', owner.pid, name, cookie));
                // A copy: a part of a packet would keep all of it.
                Open::Async { name: Bytes::copy_from_slice(name), cookie }
            }
        };
        self.open_count += 1;
        self.open.entry(key).or_default().push(open);
    }

    fn end(&mut self, key: TrackKey, owner: Owner, place: Place<'_>, queue: &mut Queue) {
        let open = match self.open.entry(key) {
            Entry::Occupied(mut entry) => {
                let open = entry.get_mut().pop();
                if entry.get().is_empty() {
                    entry.remove();
                }
                open
            }
            Entry::Vacant(_) => None,
        };
        self.open_count -= usize::from(open.is_some());
        match open {
            Some(Open::Async { name, cookie }) => {
                queue.mark(place, |out| asynchronous(out, b'F', owner.pid, &name, cookie));
            }
            // The accounting counts an end without a begin.
            Some(Open::Section) | None if owner.is_of_thread => {
                queue.mark(place, |out| append(out, format_args!("E|{}", owner.pid)));
            }
            Some(Open::Derived | Open::Section) | None => {}
        }
    }

    /// An asynchronous slice begins. Of several with one id the last one is the innermost.
    fn legacy_begins(&mut self, pid: u32, id: u64, name: Bytes) {
        if self.open_count < MOST_OPEN {
            self.legacy.entry((pid, id)).or_default().push(name);
            self.open_count += 1;
        }
    }

    /// Ends an asynchronous slice; returns its name, that of the innermost one if the event is nameless.
    fn legacy_ends(&mut self, pid: u32, id: u64, name: Bytes) -> Bytes {
        let Some(open) = self.legacy.get_mut(&(pid, id)) else { return name };
        let found = open.iter().rposition(|known| name.is_empty() || *known == name);
        let ended = found.map(|at| open.remove(at));
        if open.is_empty() {
            self.legacy.remove(&(pid, id));
        }
        self.open_count -= usize::from(ended.is_some());
        ended.unwrap_or(name)
    }

    fn counter(
        &mut self,
        event: &TrackEvent,
        key: (u32, u64),
        owner: Owner,
        place: Place<'_>,
        tracks: &Tracks,
        queue: &mut Queue,
    ) {
        let Some(counter) = tracks.counter(key.1) else { return };
        let Some(read) = Sum::of(event) else {
            self.fractions += u64::from(event.double_counter_value.is_some());
            return;
        };
        let mut value = Sum::default().add(read, counter.multiplier);
        if counter.is_incremental && (self.values.len() < MOST_COUNTERS || self.values.contains_key(&key)) {
            let sum = self.values.entry(key).or_default();
            *sum = sum.add(read, counter.multiplier);
            value = *sum;
        }
        if value.fraction != 0.0 {
            self.fractions += 1;
            return;
        }
        let name = tracks.name(key.1);
        queue.mark(place, |out| {
            append(out, format_args!("C|{}|", owner.pid));
            out.extend_from_slice(name);
            append(out, format_args!("|{}", value.whole));
        });
    }
}

/// Returns what an event does; `None` where that means nothing here.
fn action(event: &TrackEvent) -> Option<Action> {
    let Some(legacy) = event.legacy_event.as_ref().filter(|legacy| legacy.phase.is_some()) else {
        return Some(match event.r#type() {
            EventType::SliceBegin => Action::Begin,
            EventType::SliceEnd => Action::End,
            EventType::Instant => Action::Instant,
            EventType::Counter => Action::Counter,
            EventType::Unspecified => return None,
        });
    };
    let LegacyEvent { duration_us, unscoped_id, local_id, global_id, .. } = *legacy;
    let id = unscoped_id.or(local_id).or(global_id).unwrap_or(0);
    match u8::try_from(legacy.phase?).ok()? {
        b'B' => Some(Action::Begin),
        b'E' => Some(Action::End),
        b'X' => {
            let us = duration_us.and_then(|us| u64::try_from(us).ok())?;
            Some(Action::Complete(us.saturating_mul(1_000)))
        }
        b'I' | b'i' => Some(Action::Instant),
        b'b' | b'S' => Some(Action::AsyncBegin(id)),
        b'e' | b'F' => Some(Action::AsyncEnd(id)),
        _ => None,
    }
}

fn owner_of(event: &TrackEvent, sequence: &Sequence, tracks: &Tracks) -> (TrackKey, Owner) {
    let legacy = event.legacy_event.as_ref();
    let number = |id: i32| thread_number(id.into());
    let not_zero = |id: &i32| *id != 0;
    let pid = legacy.and_then(|legacy| legacy.pid_override).filter(not_zero).map(number);
    let tid = legacy.and_then(|legacy| legacy.tid_override).filter(not_zero).map(number);
    let of_thread = |pid, tid| (TrackKey::Thread(pid, tid), Owner { pid, tid, is_of_thread: true });
    if let Some(tid) = tid {
        return of_thread(pid.or(sequence.thread.map(|(pid, _)| pid)).unwrap_or(tid), tid);
    }
    match (event.track_uuid.or(sequence.default_track), sequence.thread) {
        (Some(uuid), _) => (TrackKey::Numbered(uuid), tracks.owner(uuid)),
        (None, Some((pid, tid))) => of_thread(pid, tid),
        (None, None) => (TrackKey::Numbered(0), tracks.owner(0)),
    }
}

fn begin(out: &mut Vec<u8>, pid: u32, text: &[u8]) {
    append(out, format_args!("B|{pid}|"));
    out.extend_from_slice(text);
}

fn asynchronous(out: &mut Vec<u8>, letter: u8, pid: u32, name: &[u8], cookie: u64) {
    out.push(letter);
    append(out, format_args!("|{pid}|"));
    out.extend_from_slice(name);
    append(out, format_args!("|{cookie}"));
}
