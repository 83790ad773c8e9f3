//! One pass through the inputs: every event is accounted, every record passed on in order of time.

use nntrace_common::{
    diagnostic::DiagnosticKind,
    mark::{self, Kind},
    record::{PowerRecord, Record, RecordKind},
    stamp::Stamp,
};

mod kernel_event;

use super::{
    Options, TimeRange,
    cpu_survey::CpuSurvey,
    declared::Declared,
    event_order::Order,
    events::Visitor,
    ftrace::{self, Event, EventKind},
    header::HeaderReader,
    hotplug::Hotplug,
    kernel_events::{self, KernelEvent, Reading},
    losses::{Gap, Loss, Lost, Tally},
    perfetto::NO_CPU,
    thread_stacks::{Context, ThreadStacks},
    trace_survey::{Plan, Survey},
    window_markers::{self, Marker},
};
use crate::model::{
    MAX_CPU, Marks, Model, Scheduling, Topology, causality::Origin, run_facts::Host,
    thread_name_table::ThreadNameTable, topology::TopologyError,
};

/// Pass through events in order of time.
pub(crate) struct Pass {
    /// Plan for accounting them.
    pub plan: Plan,
    /// Facts about all events, which may require another plan.
    pub survey: Survey,
    /// Number of the current input.
    turn: usize,
    /// Number of gaps of the plan that were accounted.
    gaps: usize,
    tally: Tally,
    /// Host, as far as the trace declares it.
    pub host: Host,
    /// Whether the user, and not the trace, describes the host.
    is_described: bool,
    /// Accounting of the threads.
    pub accounts: ThreadStacks,
    order: Order,
    /// Number of the current event, for [`Stamp::sequence`].
    sequence: u32,
    /// Number of thread names at most.
    header: HeaderReader,
    hotplug: Hotplug,
    /// Results from the records.
    pub results: Results,
    /// Counts of events and lines.
    pub counts: Counts,
    /// Notes on inputs that could not be read to their end.
    pub notes: Vec<String>,
}

/// Counts of events and lines.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Events.
    pub events: u64,
    /// Marks among the events.
    pub marks: u64,
    /// Power events among the events.
    pub power_events: u64,
    /// Lines in no known format.
    pub unreadable: u64,
    /// First of these whose time has no unit.
    pub without_unit: Option<String>,
    /// Events in all of the trace, up to the first that is a mark, a power event or a scheduling event.
    pub all: u64,
    /// Whether there was one.
    is_useful: bool,
    /// Name of the first of the others.
    other: String,
}

impl Counts {
    /// Returns the name of one of the events, where none of them is a mark, a power event or a scheduling event.
    #[must_use]
    pub(crate) fn only_others(&self) -> Option<String> {
        (!self.is_useful && self.all > 0).then(|| self.other.clone())
    }

    /// Takes an event while none was useful.
    #[cold]
    fn judge(&mut self, event: &Event<'_>) {
        self.all += 1;
        self.is_useful = match event.kind {
            EventKind::CpuIdle { .. } | EventKind::CpuFrequency { .. } => true,
            EventKind::Mark(payload) => {
                mark::kind(payload).is_some() || window_markers::read(payload).is_some()
            }
            EventKind::Other { name, fields } => kernel_events::read(name, fields) != Reading::Unknown,
        };
        if !self.is_useful && self.other.is_empty() {
            let name = match event.kind {
                EventKind::Other { name, .. } if !name.is_empty() => name,
                EventKind::Mark(_) => b"text in trace_marker that is not a mark",
                _ => b"events without a name",
            };
            self.other = String::from_utf8_lossy(name).into_owned();
        }
    }
}

/// Consumer of the ordered records.
pub(crate) struct Results {
    /// Model that they add up to.
    pub model: Model,
    /// CPUs of the trace.
    pub cpus: CpuSurvey,
    /// Names of threads that context switches or wake-ups give.
    pub thread_names: ThreadNameTable,
    /// Error in the clusters that were asked for.
    pub wrong: Option<TopologyError>,
}

impl Results {
    #[inline]
    fn take(&mut self, record: &Record) {
        self.model.record(record);
        if let Err(error) = self.cpus.record(record, &mut self.model) {
            self.wrong.get_or_insert(error);
        }
    }
}

impl Pass {
    /// Creates a pass with a plan.
    #[must_use]
    pub(crate) fn new(options: &Options, plan: Plan) -> Self {
        let begin = plan.range.map_or(0, |range| range.begin);
        let keeps_states = options.questions.missing || options.with_steps;
        let scheduling = if keeps_states { Scheduling::default() } else { Scheduling::for_sums() };
        let scheduling = scheduling.with_room_for(options.limits.threads);
        let model = Model::new(&options.limits, options.questions.clone(), Some(scheduling))
            .since(begin)
            .with_drivers(options.drivers.clone());
        Self {
            plan,
            survey: Survey::default(),
            turn: 0,
            gaps: 0,
            tally: Tally::default(),
            host: Host::default(),
            is_described: options.topology.is_some(),
            accounts: ThreadStacks::new(&options.limits),
            order: Order::default(),
            sequence: 0,
            header: HeaderReader::default(),
            hotplug: Hotplug::default(),
            results: Results {
                model,
                cpus: CpuSurvey::new(
                    options.topology.clone().unwrap_or_default(),
                    options.clusters.clone(),
                    options.with_steps,
                ),
                thread_names: ThreadNameTable::new(options.limits.processes),
                wrong: None,
            },
            counts: Counts::default(),
            notes: Vec::new(),
        }
    }

    /// Returns the range of the plan.
    fn range(&self) -> TimeRange {
        self.plan.range.unwrap_or(TimeRange::ALL)
    }

    /// Sets the plan, before any event is taken. What inputs have declared is of all the time, and the plan may be of a part.
    pub(crate) fn replan(&mut self, plan: Plan) {
        self.plan = plan;
        if let Some((begin, _)) = self.survey.declared
            && let Some(range) = self.plan.range
        {
            self.results.cpus.restarts(begin.max(range.begin));
        }
    }

    /// Returns begin and end of the window, ns: the part of the range that the trace covers. `None` if there is none.
    #[must_use]
    pub(crate) fn window(&self) -> Option<(u64, u64)> {
        let (first, last) = self.survey.extent()?;
        let range = self.range();
        let (begin, end) = (first.max(range.begin), last.min(range.end));
        (begin <= end).then_some((begin, end))
    }

    /// Ends the pass: the last records are passed on.
    pub(crate) fn end(&mut self) {
        self.open_gaps(u64::MAX);
        self.release();
        let end = self.window().map_or(0, |(_, end)| end);
        for gap in self.survey.gaps.end() {
            self.note_gap(gap, end);
        }
        self.results.model.advance(u64::MAX);
        self.results.model.diagnostics.set_count(DiagnosticKind::EventsLost, self.losses().events);
    }

    /// Returns the numbers of lost events, as far as they concern the range.
    #[must_use]
    pub(crate) fn losses(&self) -> Lost {
        self.tally.lost()
    }

    fn release(&mut self) {
        let results = &mut self.results;
        self.order.release(|record| results.take(record));
    }

    /// Opens the gaps that began before `time` (ns): the state of their CPUs is unknown from there on.
    #[inline]
    fn open_gaps(&mut self, time: u64) {
        let range = self.range();
        while let Some(&Gap { since, cpu }) = self.plan.gaps.get(self.gaps)
            && since.is_none_or(|since| since < time && since <= range.end)
        {
            self.gaps += 1;
            self.order.push(Record::Lost { cpu, time: since.unwrap_or(0).max(range.begin) });
        }
    }

    /// Whether a gap concerns the range.
    fn concerns(&self, gap: Gap) -> bool {
        gap.since.is_none_or(|since| since <= self.range().end)
    }

    /// Notes a gap that ends at `now` (ns), or is open there.
    #[cold]
    fn note_gap(&mut self, gap: Gap, now: u64) {
        let Gap { since, cpu } = gap;
        if self.concerns(gap) {
            let first = self.survey.extent().map_or(0, |(first, _)| first);
            self.results.model.diagnostics.add(DiagnosticKind::EventsLost, since.unwrap_or(first), cpu, b"");
            self.results.model.lose_devices(now);
            let scheduling = self.results.model.scheduling.as_mut();
            if let Some(scheduling) = scheduling.filter(|scheduling| !scheduling.is_empty()) {
                scheduling.lost(cpu, now);
            }
        }
    }

    fn power(&mut self, kind: RecordKind, cpu: u32, time: u64, state: u32) {
        self.counts.power_events += 1;
        if kind == RecordKind::Frequency {
            self.results.cpus.changes(cpu);
        }
        self.push_power(kind, cpu, time, state);
    }

    fn push_power(&mut self, kind: RecordKind, cpu: u32, time: u64, mut state: u32) {
        if kind == RecordKind::Frequency && state == u32::MAX {
            // -1 is no frequency: it is unknown.
            state = 0;
        }
        let event = PowerRecord { kind: kind as u32, cpu, time, state, lost: 0 };
        self.order.push(match kind {
            RecordKind::Idle => Record::Idle(event),
            RecordKind::Hotplug => Record::Hotplug(event),
            _ => Record::Frequency(event),
        });
    }

    /// Takes an event after the window: the first one of a CPU shows its state before.
    #[cold]
    fn behind(&mut self, event: &Event<'_>, gap: Option<Gap>) {
        let end = self.range().end;
        // Events in the window take precedence.
        self.release();
        if let Some(gap) = gap {
            self.note_gap(gap, end);
            // Events after the gap show nothing about the time before it.
            self.order.push(Record::Lost { cpu: gap.cpu, time: end });
            self.release();
        }
        let (kind, cpu, state) = match event.kind {
            EventKind::CpuIdle { state, cpu } => (RecordKind::Idle, cpu, state),
            EventKind::Other { name, fields } => match kernel_events::read(name, fields) {
                Reading::Event(KernelEvent::Idle { state, cpu }) => (RecordKind::Idle, cpu, state),
                Reading::Event(KernelEvent::Hotplug(change)) => match self.hotplug.event(event.cpu, change) {
                    Some((cpu, online)) => (RecordKind::Hotplug, cpu, u32::from(online)),
                    None => return,
                },
                _ => return,
            },
            EventKind::CpuFrequency { .. } | EventKind::Mark(_) => return,
        };
        if self.results.cpus.is_silent(cpu) {
            self.push_power(kind, cpu, end, state);
            self.release();
        }
    }

    fn mark(&mut self, event: &Event<'_>, payload: &[u8], now: u64, counts: bool) {
        let Self { accounts, order, results, sequence, .. } = self;
        match mark::kind(payload) {
            Some(Kind::Begin | Kind::End) => {
                self.counts.marks += u64::from(counts);
                if results.model.marks.forget_names(|| accounts.open_names().chain(order.names()).collect()) {
                    accounts.read_names_again();
                }
                let Model { marks: Marks { names, paths, causality, .. }, diagnostics, observer, .. } =
                    &mut results.model;
                let were_kept = causality.is_needed();
                let emits_begins = causality.questions().need_all_begins();
                let observer = observer.as_mut();
                let mut context = Context { names, paths, diagnostics, causality, emits_begins, observer };
                accounts.mark(
                    event,
                    payload,
                    Stamp::new(now, *sequence),
                    &mut context,
                    |causality, record| match record {
                        // A section that ended before the range is not in it; one that began before it counts from its
                        // begin on.
                        Record::Span(span) if !counts => {
                            let origin = Origin {
                                pid: span.tgid,
                                tid: span.tid,
                                depth: span.depth,
                                sequence: span.end_sequence,
                            };
                            causality.ended_before(origin, event.time);
                        }
                        record => order.push(record),
                    },
                );
                // Those that still wait are charged as they come.
                results.model.marks.charge_earlier(were_kept);
            }
            Some(_) => {
                let origin = accounts.origin(event, payload, *sequence);
                // Work handed over before the range may be taken in it.
                if !counts {
                    results.model.marks.causality.instant(origin, event.time, payload);
                    return;
                }
                self.counts.marks += 1;
                if !results.model.track(origin, now, payload) {
                    results.model.diagnostics.add(DiagnosticKind::UnreadableMark, now, event.tid, payload);
                }
            }
            None => self.word(window_markers::read(payload), now),
        }
    }

    /// Counts an event of a CPU that no machine has: its number is damaged, and so may be the rest.
    #[cold]
    fn beyond_cpus(&mut self, event: &Event<'_>) {
        let number = format!("CPU {} in an event of thread {}", event.cpu, event.tid);
        self.results.model.diagnostics.add(
            DiagnosticKind::CpuOutOfRange,
            event.time,
            event.cpu,
            number.as_bytes(),
        );
    }

    /// Takes a frequency that was read from a CPU. It holds from here on where no event has shown another one: the reading was
    /// made a while before it was written, and is no newer than an event before it. The other words are handled by the survey.
    fn word(&mut self, marker: Option<Marker>, now: u64) {
        if let Some(Marker::Frequency { khz, cpu }) = marker
            && !self.results.cpus.has_changed(cpu)
        {
            self.push_power(RecordKind::Frequency, cpu, now, khz);
        }
    }
}

impl Visitor for Pass {
    fn declared(&mut self, facts: &Declared) {
        if let Some(run) = &facts.run {
            self.results.model.marks.named_drivers.extend(&run.drivers);
            self.host = run.host.clone();
        }
        if let Some(window) = facts.window {
            self.survey.declare(window);
            self.results.cpus.starts(window.0.max(self.range().begin));
        }
        if let Some(power) = facts.power.as_ref().filter(|_| !self.is_described) {
            self.results.cpus.topology = power.topology.clone();
            // Of a part of the time, its begin is not the declared one.
            if self.plan.range.is_none() {
                self.results.cpus.initial = power.initial.clone();
            }
        }
    }

    fn turn(&mut self, input: usize) {
        self.turn = input;
        self.survey.turn(input);
    }

    fn event(&mut self, event: &Event<'_>) -> bool {
        if event.cpu > MAX_CPU && event.cpu != NO_CPU {
            self.beyond_cpus(event);
            return true;
        }
        let gap = self.survey.take(event);
        if self.survey.is_out_of_order {
            return false;
        }
        if !self.counts.is_useful {
            self.counts.judge(event);
        }
        // The texts of more events than that are longer than any disk.
        self.sequence = self.sequence.saturating_add(1);
        let (time, range) = (event.time, self.range());
        self.results.cpus.see(event.cpu);
        self.open_gaps(time);
        if time > range.end {
            self.behind(event, gap);
            return true;
        }
        let counts = time >= range.begin;
        let now = time.max(range.begin);
        self.counts.events += u64::from(counts);
        if !self.survey.is_declared_by_all {
            self.results.cpus.starts(now);
        }
        let results = &mut self.results;
        // By its own time: events before the window are ordered, too.
        self.order.advance(time, |record| results.take(record));
        results.model.advance(time.saturating_sub(1));
        if let Some(gap) = gap {
            self.note_gap(gap, now);
            // Even without a length, between events of one instant.
            self.order.push(Record::Lost { cpu: event.cpu, time: now });
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

    fn lost(&mut self, loss: Loss) {
        let gap = self.survey.gaps.lost(loss);
        let counts = gap.is_none_or(|gap| self.concerns(gap));
        self.tally.add(self.turn, loss, counts);
    }

    fn unreadable(&mut self, input: &str, number: u64, line: &[u8]) {
        self.counts.unreadable += 1;
        let place = format!("{input}:{number}: {}", String::from_utf8_lossy(line));
        self.results.model.diagnostics.add(DiagnosticKind::UnreadableLine, 0, 0, place.as_bytes());
        if self.counts.without_unit.is_none()
            && let Some(time) = ftrace::time_without_unit(line)
        {
            self.counts.without_unit = Some(format!("`{time}` in {input}:{number}"));
        }
    }

    fn cut(&mut self, input: &str, why: String) {
        self.notes.push(format!("{input}: read only in part: {why}"));
    }
}
