//! Content of blocks of events, written.

use nntrace_common::{
    app_events::AppEvent,
    record::{BeginRecord, PowerRecord, ProcessRecord, Record, SchedRecord, SpanRecord},
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    call_entry,
    initial_host::InitialHost,
    kind::{self, Kind},
    limit_entry, rival_entry,
    varint::{put, put_bytes, put_difference},
};
use crate::model::{causality::Origin, function_names::Names, input::Input, scheduling::Found};

/// Names without a text that are remembered at most.
const MOST_UNNAMED: usize = 65_536;

/// Block of events that is being written. It needs no other one to be read: what it refers to is defined in it.
#[derive(Default)]
pub(super) struct EventBlock {
    /// Content so far.
    pub(super) bytes: Vec<u8>,
    /// Number of events.
    pub(super) events: u32,
    /// Number of the first event.
    pub(super) first: u64,
    /// Number of the last event.
    pub(super) last: u64,
    /// Earliest and latest time, ns.
    pub(super) times: Option<(u64, u64)>,
    /// Time of the entry before, ns.
    time: u64,
    sites: FxHashMap<Site, u32>,
    names: FxHashSet<u64>,
}

/// Properties that the sections of one place on one thread have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Site {
    kind: u32,
    tid: u32,
    tgid: u32,
    tag: u8,
    class: u8,
    depth: u8,
    adds: u8,
    path: u64,
    name: u64,
}

/// Hashes of names whose texts were not known when they were needed.
pub(super) type Unnamed = FxHashSet<u64>;

impl EventBlock {
    /// Empties the block for the next events; its content so far is returned, in exchange for an empty buffer.
    pub(super) fn take(&mut self, empty: Vec<u8>) -> Vec<u8> {
        let Self { bytes, events, times, time, sites, names, .. } = self;
        (*events, *times, *time) = (0, None, 0);
        sites.clear();
        names.clear();
        std::mem::replace(bytes, empty)
    }

    /// Appends an input with its number, which is larger than those before.
    #[inline]
    pub(super) fn push(&mut self, number: u64, input: &Input<'_>, names: &Names, unnamed: &mut Unnamed) {
        if self.events == 0 {
            (self.first, self.last) = (number, number);
        }
        match *input {
            Input::Record(Record::Span(span)) => self.span(Kind::Span, number, span, names, unnamed),
            Input::SpanAnywhere(span) => self.span(Kind::SpanAnywhere, number, span, names, unnamed),
            Input::Record(Record::Sched(event)) => self.sched(number, event),
            Input::Record(Record::Idle(event)) => self.power(Kind::Idle, number, event),
            Input::Record(Record::Frequency(event)) => self.power(Kind::Frequency, number, event),
            Input::Record(Record::Hotplug(event)) => self.power(Kind::Hotplug, number, event),
            // Of traces alone: no run that is recorded has them.
            Input::Device { .. } | Input::DevicesLost { .. } => return,
            _ => self.rare(number, input, names, unnamed),
        }
        self.events += 1;
    }

    /// Appends an input of any other kind.
    fn rare(&mut self, number: u64, input: &Input<'_>, names: &Names, unnamed: &mut Unnamed) {
        match *input {
            Input::Record(record) => self.record(number, record, names, unnamed),
            // Not here: above.
            Input::SpanAnywhere(_) | Input::Device { .. } | Input::DevicesLost { .. } => {}
            Input::ThreadMarked { tgid, tid } => {
                self.head(Kind::ThreadMarked, number);
                self.numbers(&[tgid, tid]);
            }
            Input::Track { origin, time, payload } => {
                self.head(Kind::Track, number);
                self.mark(origin, time, payload);
            }
            Input::AnnotatedBegin { origin, time, payload, name_at } => {
                self.head(Kind::AnnotatedBegin, number);
                self.mark(origin, time, payload);
                self.numbers(&[u32::from(name_at)]);
            }
            Input::AppEvent(event) => {
                self.name(event.name, names, unnamed);
                self.app_event(number, event);
            }
            Input::SchedulingBegins { begin } => {
                self.head(Kind::SchedulingBegins, number);
                put(&mut self.bytes, begin);
            }
            Input::ThreadWatched { pid, tid, since, found } => {
                self.head(Kind::ThreadWatched, number);
                self.numbers(&[pid, tid]);
                self.time(since);
                self.bytes.push(match found {
                    Found::Awake => 0,
                    Found::Sleeping => 1,
                    Found::Uninterruptible => 2,
                });
            }
            Input::SchedulingLost { cpu, lost, time } => {
                self.head(Kind::SchedulingLost, number);
                self.numbers(&[cpu, lost]);
                self.time(time);
            }
            Input::PowerBegins { topology, begin, initial, with_timelines: _ } => {
                self.head(Kind::PowerBegins, number);
                put(&mut self.bytes, begin);
                put_bytes(&mut self.bytes, &InitialHost::json(topology, initial));
            }
            Input::NamesForgotten { kept } => {
                self.head(Kind::NamesForgotten, number);
                put(&mut self.bytes, kept.len() as u64);
                for hash in kept {
                    self.hash(*hash);
                }
            }
            Input::Advance { until } => {
                self.head(Kind::Advance, number);
                put(&mut self.bytes, until);
            }
            Input::CallDefinition(definition) => {
                self.head(Kind::CallDefinition, number);
                // Texts and numbers, which JSON has.
                put_bytes(&mut self.bytes, &serde_json::to_vec(definition).unwrap_or_default());
            }
            Input::Call(call) => {
                self.entry(Kind::Call, number, &call_entry::bytes(call), &[call.begin, call.end]);
            }
        }
    }

    fn record(&mut self, number: u64, record: &Record, names: &Names, unnamed: &mut Unnamed) {
        match record {
            Record::Begin(begin) => {
                let BeginRecord { tid, tgid, label, time, name, .. } = *begin;
                self.name(name, names, unnamed);
                self.head(Kind::Begin, number);
                self.numbers(&[tgid, tid]);
                self.bytes.push(label.byte());
                self.time(time);
                self.hash(name);
            }
            Record::Lost { cpu, time } => {
                self.head(Kind::Lost, number);
                self.numbers(&[*cpu]);
                self.time(*time);
            }
            Record::Fork(event) => self.process(Kind::Fork, number, event),
            Record::Exec(event) => self.process(Kind::Exec, number, event),
            Record::Exit(event) => self.process(Kind::Exit, number, event),
            Record::Loader(event) => self.process(Kind::Loader, number, event),
            Record::TakesPart(event) => self.process(Kind::TakesPart, number, event),
            Record::FrequencyLimit(limit) => {
                let entry = limit_entry::limit_bytes(limit);
                self.entry(Kind::FrequencyLimit, number, &entry, &[limit.time]);
            }
            Record::Cooling(cooling) => {
                let entry = limit_entry::cooling_bytes(cooling);
                self.entry(Kind::Cooling, number, &entry, &[cooling.time]);
            }
            Record::Rival(turn) => self.entry(Kind::Rival, number, &rival_entry::bytes(turn), &[turn.end]),
            // Not here: by themselves.
            Record::Span(_)
            | Record::Sched(_)
            | Record::Idle(_)
            | Record::Frequency(_)
            | Record::Hotplug(_) => {}
        }
    }

    #[inline]
    fn span(&mut self, kind: Kind, number: u64, span: &SpanRecord, names: &Names, unnamed: &mut Unnamed) {
        let SpanRecord {
            kind: record,
            tid,
            tgid,
            tag,
            class,
            depth,
            adds,
            begin,
            end,
            own,
            exclusive,
            path,
            name,
            // A recording has nanoseconds.
            begin_sequence: _,
            end_sequence: _,
        } = *span;
        let site = Site { kind: record, tid, tgid, tag, class, depth, adds: adds.bits(), path, name };
        let place = match self.sites.get(&site) {
            Some(place) => *place,
            None => self.site(&site, span, names, unnamed),
        };
        self.head(kind, number);
        put(&mut self.bytes, u64::from(place));
        self.time(end);
        let length = end.saturating_sub(begin);
        // Neither is ever longer than the section.
        for time in [length, length.saturating_sub(own), length.saturating_sub(exclusive)] {
            put(&mut self.bytes, time);
        }
    }

    #[cold]
    fn site(&mut self, site: &Site, span: &SpanRecord, names: &Names, unnamed: &mut Unnamed) -> u32 {
        let Site { tid, tgid, tag, class, depth, adds, path, name, .. } = *site;
        self.name(name, names, unnamed);
        put(&mut self.bytes, Kind::Site as u64);
        self.numbers(&[tgid, tid]);
        self.bytes.extend([tag, class, depth, adds, u8::from(span.is_provisional())]);
        self.hash(path);
        self.hash(name);
        let place = self.sites.len() as u32;
        self.sites.insert(*site, place);
        place
    }

    /// Defines a name, once in a block.
    fn name(&mut self, hash: u64, names: &Names, unnamed: &mut Unnamed) {
        if self.names.contains(&hash) {
            return;
        }
        if let Some(name) = names.get(hash) {
            self.names.insert(hash);
            put(&mut self.bytes, Kind::Name as u64);
            self.hash(hash);
            put_bytes(&mut self.bytes, name.text.as_bytes());
        } else if unnamed.len() < MOST_UNNAMED {
            unnamed.insert(hash);
        }
    }

    fn sched(&mut self, number: u64, event: &SchedRecord) {
        let SchedRecord { tid, tgid, cpu, time, change, lost, .. } = *event;
        self.head(Kind::Sched, number);
        self.numbers(&[tid, tgid, cpu]);
        self.time(time);
        self.numbers(&[change, lost]);
    }

    fn power(&mut self, kind: Kind, number: u64, event: &PowerRecord) {
        let PowerRecord { cpu, time, state, lost, .. } = *event;
        self.head(kind, number);
        self.numbers(&[cpu]);
        self.time(time);
        // The end of an idle state is the largest number: one more wraps around to zero.
        self.numbers(&[state.wrapping_add(1), lost]);
    }

    fn process(&mut self, kind: Kind, number: u64, event: &ProcessRecord) {
        let ProcessRecord { tgid, tid, detail, time, .. } = *event;
        self.head(kind, number);
        self.numbers(&[tgid, tid, detail]);
        self.time(time);
    }

    fn mark(&mut self, origin: Origin, time: u64, payload: &[u8]) {
        self.numbers(&[origin.pid, origin.tid, u32::from(origin.depth)]);
        self.time(time);
        put_bytes(&mut self.bytes, payload);
    }

    fn app_event(&mut self, number: u64, event: &AppEvent) {
        let AppEvent { change, begun_by, tgid, tid, time, begin, name } = *event;
        self.head(Kind::AppEvent, number);
        self.numbers(&[change, begun_by, tgid, tid]);
        self.time(time);
        put_difference(&mut self.bytes, time, begin);
        self.hash(name);
    }

    /// Appends an entry of a kind that has a length, with its times, ns.
    fn entry(&mut self, kind: Kind, number: u64, entry: &[u8], times: &[u64]) {
        self.head(kind, number);
        put_bytes(&mut self.bytes, entry);
        for time in times {
            self.spans(*time);
        }
    }

    #[inline]
    fn head(&mut self, kind: Kind, number: u64) {
        let distance = number - self.last;
        self.last = number;
        put(&mut self.bytes, distance << kind::BITS | kind as u64);
    }

    #[inline]
    fn numbers(&mut self, numbers: &[u32]) {
        for number in numbers {
            put(&mut self.bytes, u64::from(*number));
        }
    }

    #[inline]
    fn hash(&mut self, hash: u64) {
        self.bytes.extend_from_slice(&hash.to_le_bytes());
    }

    #[inline]
    fn time(&mut self, time: u64) {
        put_difference(&mut self.bytes, time, self.time);
        self.time = time;
        self.spans(time);
    }

    /// Includes a time in those of the block.
    #[inline]
    fn spans(&mut self, time: u64) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }
}
