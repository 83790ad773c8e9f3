//! One pass through the inputs: every event to where it is accounted, every record on in order of time.

use std::collections::BTreeMap;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    mark::{self, Kind},
    record::{PowerRecord, Record, RecordKind},
};

use super::{
    Options, TimeRange,
    accounts::{Accounts, Context},
    cpus::Cpus,
    events::Visitor,
    ftrace::{Event, EventKind},
    lines::Line,
    oddities::Oddities,
    order::Order,
};
use crate::model::{Marks, topology::TopologyError};

/// One pass through the inputs.
pub struct Pass {
    range: Option<TimeRange>,
    keeps_all: bool,
    /// Whether an event was older than the one before it, which this pass was not made for.
    pub is_out_of_order: bool,
    /// First and last event, ns.
    pub seen: Option<(u64, u64)>,
    /// First and last event of those that count, ns.
    pub window: Option<(u64, u64)>,
    /// The threads.
    pub accounts: Accounts,
    order: Order,
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
    /// What was odd.
    pub oddities: Oddities,
    /// What was wrong with the clusters that were asked for.
    pub wrong: Option<TopologyError>,
}

impl Results {
    #[inline]
    fn take(&mut self, record: &Record) {
        match record {
            Record::Span(span) => self.marks.span(span),
            Record::Begin(begin) => self.marks.begin(begin),
            power => {
                if let Err(error) = self.cpus.record(power, &mut self.oddities) {
                    self.wrong.get_or_insert(error);
                }
            }
        }
    }
}

impl Pass {
    /// A pass for inputs in order of time, or for any.
    #[must_use]
    pub fn new(options: &Options, keeps_all: bool) -> Self {
        Self {
            range: options.range,
            keeps_all,
            is_out_of_order: false,
            seen: None,
            window: None,
            accounts: Accounts::default(),
            order: Order::new(keeps_all),
            results: Results {
                marks: Marks { named_drivers: options.drivers.clone(), ..Marks::default() },
                cpus: Cpus::new(options.clusters.clone()),
                oddities: Oddities::default(),
                wrong: None,
            },
            counts: Counts::default(),
            notes: Vec::new(),
        }
    }

    /// No more events: the last records go on.
    pub fn end(&mut self) {
        let results = &mut self.results;
        self.order.release(|record| results.take(record));
    }

    fn power(&mut self, kind: RecordKind, cpu: u32, time: u64, state: u32) {
        self.counts.power_events += 1;
        let event = PowerRecord { kind: kind as u32, cpu, time, state, lost: 0 };
        self.order.push(if kind == RecordKind::Idle {
            Record::Idle(event)
        } else {
            Record::Frequency(event)
        });
    }

    fn mark(&mut self, event: &Event<'_>, payload: &[u8], now: u64, counts: bool) {
        let Self { accounts, order, results, .. } = self;
        match mark::kind(payload) {
            Some(Kind::Begin | Kind::End) => {
                self.counts.marks += u64::from(counts);
                let Results { marks: Marks { names, paths, .. }, oddities, .. } = results;
                accounts.mark(event, payload, now, &mut Context { names, paths, oddities }, |record| {
                    // What ended before the range is not in it; what began before it counts from its begin on.
                    if counts || matches!(record, Record::Begin(_)) {
                        order.push(record);
                    }
                });
            }
            Some(_) if counts => {
                self.counts.marks += 1;
                let pid = accounts.process(event, payload);
                if !results.marks.tracks.add(pid, event.tid, now, payload) {
                    results.oddities.add(DiagnosticKind::UnreadableMark, now, event.tid, payload);
                }
            }
            _ => {}
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
            // Sorted, nothing more can follow.
            return self.keeps_all;
        }
        let counts = time >= range.begin;
        let now = time.max(range.begin);
        if counts {
            let (begin, end) = self.window.unwrap_or((time, time));
            // Before any record that counts is taken: of a trace out of order, all are taken at the end.
            self.window = Some((begin.min(time), end.max(time)));
        }
        self.counts.events += u64::from(counts);
        self.results.cpus.see(event.cpu);
        self.results.cpus.starts(if self.keeps_all { first.min(time).max(range.begin) } else { now });
        let results = &mut self.results;
        self.order.advance(now, |record| results.take(record));
        match event.kind {
            EventKind::Mark(payload) => self.mark(event, payload, now, counts),
            EventKind::CpuIdle { state, cpu } => self.power(RecordKind::Idle, cpu, now, state),
            EventKind::CpuFrequency { khz, cpu } => self.power(RecordKind::Frequency, cpu, now, khz),
            EventKind::Other { .. } => {}
        }
        true
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>) {
        *self.counts.lost.entry(cpu).or_default() += events.unwrap_or(1);
        let time = self.seen.map_or(0, |(_, last)| last);
        self.results.oddities.add(DiagnosticKind::EventsLost, time, cpu, b"");
        self.results.oddities.add_more(DiagnosticKind::EventsLost, events.unwrap_or(1).saturating_sub(1));
        self.order.push(Record::Lost { cpu, time });
    }

    fn unreadable(&mut self, input: &str, line: &Line<'_>) {
        self.counts.unreadable += 1;
        let place = format!("{input}:{}: {}", line.number, String::from_utf8_lossy(line.bytes));
        self.results.oddities.add(DiagnosticKind::UnreadableLine, 0, 0, place.as_bytes());
    }

    fn cut(&mut self, input: &str, why: String) {
        self.notes.push(format!("{input}: read only in part: {why}"));
    }
}
