//! One pass through the inputs: every event to where it is accounted, every record on in order of time.

use std::collections::BTreeMap;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    mark::{self, Kind},
    record::{PowerRecord, Record, RecordKind, SchedRecord},
    sched::Change,
};

use rustc_hash::FxHashMap;

use super::{
    Options, TimeRange,
    accounts::{Accounts, Context},
    cpus::Cpus,
    events::Visitor,
    ftrace::{Event, EventKind},
    header::HeaderReader,
    hotplug::Hotplug,
    markers::{self, Marker},
    oddities::Oddities,
    order::Order,
    sched::{self, Told},
    tasks::{self, TaskEvent},
};
use crate::model::{Marks, Scheduling, Topology, causality::Causality, topology::TopologyError};

/// One pass through the inputs.
pub struct Pass {
    range: Option<TimeRange>,
    keeps_all: bool,
    /// Whether an event was older than the one before it, which this pass was not made for.
    pub is_out_of_order: bool,
    /// First and last event, ns.
    pub seen: Option<(u64, u64)>,
    /// The first word that the window begins, and the last that it ends, ns.
    pub markers: (Option<u64>, Option<u64>),
    /// Whether the user describes the machine, and not the trace.
    is_described: bool,
    /// The threads.
    pub accounts: Accounts,
    order: Order,
    header: HeaderReader,
    hotplug: Hotplug,
    /// What the records make.
    pub results: Results,
    /// How much there was.
    pub counts: Counts,
    /// Inputs that could not be read to their end.
    pub notes: Vec<String>,
}

/// How much there was.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Marks of these.
    pub marks: u64,
    /// Power events of these.
    pub power_events: u64,
    /// Lines in no format that is known.
    pub unreadable: u64,
    /// Events that the tracer dropped, as far as it says how many, by CPU.
    pub lost: BTreeMap<u32, u64>,
}

/// What takes the records in order.
pub struct Results {
    /// Of marks.
    pub marks: Marks,
    /// Of power events.
    pub cpus: Cpus,
    /// Of context switches and wake-ups.
    pub scheduling: Scheduling,
    /// The last names of threads that left a CPU.
    pub thread_names: FxHashMap<u32, Box<[u8]>>,
    /// What was odd.
    pub oddities: Oddities,
    /// What was wrong with the clusters that were asked for.
    pub wrong: Option<TopologyError>,
}

impl Results {
    #[inline]
    fn take(&mut self, record: &Record) {
        match record {
            Record::Span(span) => {
                let is_asked = self.marks.causality.questions().missing && !self.scheduling.is_empty();
                self.marks.span(span, is_asked.then_some(&self.scheduling));
            }
            Record::Begin(begin) => self.marks.begin(begin),
            Record::Sched(sched) => self.scheduling.record(sched),
            power => {
                if let (Record::Lost { cpu, time }, false) = (power, self.scheduling.is_empty()) {
                    self.scheduling.lost(*cpu, *time);
                }
                if let Err(error) = self.cpus.record(power, &mut self.oddities) {
                    self.wrong.get_or_insert(error);
                }
            }
        }
    }
}

impl Pass {
    /// A pass through this range of time, for inputs in order of time, or for any.
    #[must_use]
    pub fn new(options: &Options, range: Option<TimeRange>, keeps_all: bool) -> Self {
        Self {
            range,
            keeps_all,
            is_out_of_order: false,
            seen: None,
            markers: (None, None),
            is_described: options.topology.is_some(),
            accounts: Accounts::default(),
            order: Order::new(keeps_all),
            header: HeaderReader::default(),
            hotplug: Hotplug::default(),
            results: Results {
                marks: Marks {
                    named_drivers: options.drivers.clone(),
                    causality: Causality::new(options.questions.clone()),
                    ..Marks::default()
                },
                cpus: Cpus::new(options.topology.clone().unwrap_or_default(), options.clusters.clone())
                    .keeping_steps(options.with_steps),
                scheduling: if options.questions.missing {
                    Scheduling::default()
                } else {
                    Scheduling::for_sums()
                },
                thread_names: FxHashMap::default(),
                oddities: Oddities::default(),
                wrong: None,
            },
            counts: Counts::default(),
            notes: Vec::new(),
        }
    }

    /// The window that the markers of the trace name; `None` without any.
    #[must_use]
    pub fn marked_range(&self) -> Option<TimeRange> {
        let (start, end) = self.markers;
        let range = TimeRange { begin: start.unwrap_or(0), end: end.unwrap_or(u64::MAX) };
        ((start.is_some() || end.is_some()) && range.begin <= range.end).then_some(range)
    }

    /// Begin and end of the window, ns: what there is of the range. `None` when the trace has no part of it.
    #[must_use]
    pub fn window(&self) -> Option<(u64, u64)> {
        let (first, last) = self.seen?;
        let range = self.range.unwrap_or(TimeRange::ALL);
        let (begin, end) = (first.max(range.begin), last.min(range.end));
        (begin <= end).then_some((begin, end))
    }

    /// No more events: the last records go on.
    pub fn end(&mut self) {
        if let Some((begin, _)) = self.window() {
            self.results.cpus.starts(begin);
        }
        let results = &mut self.results;
        self.order.release(|record| results.take(record));
        results.marks.advance(u64::MAX);
    }

    fn power(&mut self, kind: RecordKind, cpu: u32, time: u64, state: u32) {
        self.counts.power_events += 1;
        let event = PowerRecord { kind: kind as u32, cpu, time, state, lost: 0 };
        self.order.push(match kind {
            RecordKind::Idle => Record::Idle(event),
            RecordKind::Hotplug => Record::Hotplug(event),
            _ => Record::Frequency(event),
        });
    }

    fn scheduling(&mut self, event: &Event<'_>, name: &[u8], fields: &[u8], now: u64) {
        let (order, cpu) = (&mut self.order, event.cpu);
        let mut push = |tid, tgid, change: Change| {
            let kind = RecordKind::Sched as u32;
            order.push(Record::Sched(SchedRecord {
                kind,
                tid,
                tgid,
                cpu,
                time: now,
                change: change as u32,
                lost: 0,
            }));
        };
        match sched::read(name, fields) {
            Some(Told::Switch { prev, why, next }) => {
                // The event is that of the thread that leaves.
                let tgid = event.tgid.filter(|_| event.tid == prev.tid).unwrap_or(0);
                push(prev.tid, tgid, why);
                push(next.tid, 0, Change::In);
                let names = &mut self.results.thread_names;
                if names.get(&prev.tid).is_none_or(|known| **known != *prev.comm) {
                    names.insert(prev.tid, prev.comm.into());
                }
            }
            Some(Told::Woken(task, change)) => push(task.tid, 0, change),
            None => {}
        }
    }

    fn mark(&mut self, event: &Event<'_>, payload: &[u8], now: u64, counts: bool) {
        let Self { accounts, order, results, .. } = self;
        match mark::kind(payload) {
            Some(Kind::Begin | Kind::End) => {
                self.counts.marks += u64::from(counts);
                let Results { marks: Marks { names, paths, causality, .. }, oddities, .. } = results;
                let tells_begins = causality.questions().need_all_begins();
                let mut context = Context { names, paths, oddities, causality, tells_begins };
                accounts.mark(event, payload, now, &mut context, |record| {
                    // What ended before the range is not in it; what began before it counts from its begin on.
                    if counts || matches!(record, Record::Begin(_)) {
                        order.push(record);
                    }
                });
            }
            Some(_) => {
                let pid = accounts.process(event, payload);
                // What is handed over before the range may be taken in it.
                if !counts {
                    results.marks.causality.tell(pid, event.tid, now, payload);
                    return;
                }
                self.counts.marks += 1;
                if !results.marks.tell(pid, event.tid, now, payload) {
                    results.oddities.add(DiagnosticKind::UnreadableMark, now, event.tid, payload);
                }
            }
            None => self.word(markers::read(payload), event.time, now),
        }
    }

    /// Takes an event that is no mark, and of no power state by itself.
    fn other(&mut self, event: &Event<'_>, name: &[u8], fields: &[u8], now: u64) {
        if let Some((cpu, online)) = self.hotplug.event(event.cpu, name, fields) {
            self.power(RecordKind::Hotplug, cpu, now, u32::from(online));
            return;
        }
        let causality = &mut self.results.marks.causality;
        match tasks::read(name, fields) {
            Some(TaskEvent::Fork { child }) => causality.create(now, event.tid, child),
            Some(TaskEvent::Exit) => causality.exit(now, event.tid),
            None if name.starts_with(b"sched_") => self.scheduling(event, name, fields, now),
            None => self.word(markers::of_event(name, fields), event.time, now),
        }
    }

    /// Takes what a word in the trace says about it.
    fn word(&mut self, marker: Option<Marker>, time: u64, now: u64) {
        match marker {
            Some(Marker::Start) => {
                self.markers.0 = Some(self.markers.0.map_or(time, |known| known.min(time)));
            }
            Some(Marker::End) => {
                self.markers.1 = Some(self.markers.1.map_or(time, |known| known.max(time)));
            }
            // What was read of a policy tells what it is from here on, as a change would.
            Some(Marker::Frequency { khz, cpu }) => {
                let event =
                    PowerRecord { kind: RecordKind::Frequency as u32, cpu, time: now, state: khz, lost: 0 };
                self.order.push(Record::Frequency(event));
            }
            None => {}
        }
    }
}

impl Visitor for Pass {
    fn event(&mut self, event: &Event<'_>) -> bool {
        let time = event.time;
        let (first, last) = self.seen.unwrap_or((time, time));
        if time < last && !self.keeps_all {
            self.is_out_of_order = true;
            return false;
        }
        self.seen = Some((first.min(time), last.max(time)));
        let range = self.range.unwrap_or(TimeRange::ALL);
        if time > range.end {
            // What follows is looked at all the same: it shows whether the trace is in order.
            return true;
        }
        let counts = time >= range.begin;
        let now = time.max(range.begin);
        self.counts.events += u64::from(counts);
        self.results.cpus.see(event.cpu);
        self.results.cpus.starts(if self.keeps_all { first.min(time).max(range.begin) } else { now });
        let results = &mut self.results;
        self.order.advance(now, |record| results.take(record));
        if !self.keeps_all {
            results.marks.advance(now.saturating_sub(1));
        }
        match event.kind {
            EventKind::Mark(payload) => self.mark(event, payload, now, counts),
            EventKind::CpuIdle { state, cpu } => self.power(RecordKind::Idle, cpu, now, state),
            EventKind::CpuFrequency { khz, cpu } => self.power(RecordKind::Frequency, cpu, now, khz),
            EventKind::Other { name, fields } => self.other(event, name, fields, now),
        }
        true
    }

    fn header(&mut self, line: &[u8]) -> bool {
        let mut other = Topology::default();
        let of_trace = &mut self.results.cpus.topology;
        self.header.feed(line, if self.is_described { &mut other } else { of_trace })
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>) {
        let time = self.seen.map_or(0, |(_, last)| last);
        if self.range.is_some_and(|range| time > range.end) {
            return;
        }
        let lost = self.counts.lost.entry(cpu).or_default();
        *lost = lost.saturating_add(events.unwrap_or(1));
        self.results.oddities.add(DiagnosticKind::EventsLost, time, cpu, b"");
        self.results.oddities.add_more(DiagnosticKind::EventsLost, events.unwrap_or(1).saturating_sub(1));
        self.order.push(Record::Lost { cpu, time });
    }

    fn unreadable(&mut self, input: &str, number: u64, line: &[u8]) {
        self.counts.unreadable += 1;
        let place = format!("{input}:{number}: {}", String::from_utf8_lossy(line));
        self.results.oddities.add(DiagnosticKind::UnreadableLine, 0, 0, place.as_bytes());
    }

    fn cut(&mut self, input: &str, why: String) {
        self.notes.push(format!("{input}: read only in part: {why}"));
    }
}
