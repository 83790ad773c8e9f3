//! The meaning of records. Pure: no input or output, no clock, no terminal; knows `nntrace-common` only.
//!
//! A run feeds one `Model`, record by record in order of time; the [`Findings`] are everything that came of it.

mod app_phase_numbers;
pub(crate) mod app_phases;
pub(crate) mod app_report_sums;
pub(crate) mod app_reports;
pub(crate) mod async_executions;
pub(crate) mod begin_parsing;
pub mod calls;
pub(crate) mod capped_table;
pub mod causality;
pub(crate) mod cluster_residency;
pub(crate) mod condition;
pub mod cpu_list;
pub mod cpu_residency;
pub(crate) mod cpu_transition;
pub(crate) mod deviation;
pub mod device_clocks;
pub mod device_usage;
pub(crate) mod devices;
pub(crate) mod diagnostics;
pub(crate) mod dispatch_overhead;
pub mod energy;
pub(crate) mod findings;
pub(crate) mod frequency_limits;
pub(crate) mod function_names;
pub(crate) mod histogram;
pub(crate) mod idle_stays;
pub mod initial_state;
pub mod input;
pub(crate) mod kernel_comparison;
pub(crate) mod language_models;
pub(crate) mod layer_phase_times;
pub mod limits;
pub(crate) mod marks;
pub mod name_pattern;
pub mod near_names;
pub mod opened_files;
pub(crate) mod parse_cache;
pub(crate) mod perf_counts;
pub mod plurals;
pub(crate) mod power;
pub mod rails;
pub(crate) mod recent_sections;
pub(crate) mod run_facts;
pub(crate) mod scheduling;
pub mod section;
pub mod section_filter;
pub(crate) mod section_sites;
pub mod section_statistics;
pub(crate) mod slowest_calls;
pub(crate) mod small_counts;
pub(crate) mod small_map;
pub(crate) mod stacked_functions;
pub(crate) mod stacks;
pub(crate) mod thread_marks;
pub(crate) mod thread_name_table;
pub mod timeline;
pub mod topology;
mod tracks;
pub mod unfinished_sections;
pub(crate) mod usage;

pub(crate) use cluster_residency::Clusters;
pub use findings::Findings;
pub use marks::Marks;
pub use power::Power;
pub(crate) use scheduling::Scheduling;
pub use topology::Topology;

use std::collections::BTreeSet;

use nntrace_common::{
    app_events::AppEvent,
    diagnostic::DiagnosticKind,
    record::{PowerRecord, Record, SpanRecord},
};

use calls::{Call, CallDefinition};
use causality::{Origin, Questions};
use device_clocks::DeviceClocks;
use devices::{Devices, event::DeviceEvent, job::Submitter};
use diagnostics::DiagnosticCounts;
use frequency_limits::FrequencyLimits;
use initial_state::InitialState;
use input::{Input, Observer};
use limits::Limits;
use scheduling::Found;
use timeline::Timelines;
use usage::UsageLedgers;

/// The largest number of a CPU that is believed.
pub(crate) const MAX_CPU: u32 = cpu_list::MOST - 1;

/// Everything that the records of one run add up to.
pub(crate) struct Model {
    /// Marks, what they cause, and what they belong to.
    pub(crate) marks: Marks,
    /// CPUs and clusters.
    pub(crate) power: Power,
    /// Accelerators and GPUs.
    pub(crate) devices: Devices,
    /// Clocks of devices, by events.
    pub(crate) device_clocks: DeviceClocks,
    frequency_limits: FrequencyLimits,
    /// Power records that came before it was known which CPUs there are.
    waiting: Option<Vec<Record>>,
    /// Threads; `None` where context switches are not taken.
    pub(crate) scheduling: Option<Scheduling>,
    /// Resources that sections use; `None` before the first context switch.
    usage: Option<Box<UsageLedgers>>,
    limits: Limits,
    /// Diagnostics that only the model can find; the kernel programs of a live run count their own.
    pub(crate) diagnostics: DiagnosticCounts,
    /// Consumer of everything that is taken.
    pub(crate) observer: Option<Observer>,
}

impl Model {
    /// Nothing yet; no table grows beyond these limits.
    #[must_use]
    pub(crate) fn new(limits: &Limits, questions: Questions, scheduling: Option<Scheduling>) -> Self {
        Self {
            marks: Marks::new(limits, questions),
            power: Power::new(&Topology::default(), 0, &InitialState::default(), false),
            devices: Devices::default(),
            device_clocks: DeviceClocks::default(),
            frequency_limits: FrequencyLimits::default(),
            waiting: Some(Vec::new()),
            scheduling,
            usage: None,
            limits: *limits,
            diagnostics: DiagnosticCounts::default(),
            observer: None,
        }
    }

    /// Shows every input to an observer from here on, beside those that it is shown to already.
    pub(crate) fn observe_by(&mut self, observer: Observer) {
        self.observer = Some(match self.observer.take() {
            Some(first) => first.and(observer),
            None => observer,
        });
    }

    #[inline]
    fn observe(&mut self, input: &Input<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.input(input, &self.marks.names);
        }
    }

    /// Takes an input that an observer was shown.
    pub(crate) fn apply(&mut self, input: &Input<'_>) {
        match *input {
            Input::Record(record) => self.record(record),
            Input::SpanAnywhere(span) => {
                if !self.span_anywhere(span) {
                    self.record(&Record::Span(*span));
                }
            }
            Input::ThreadMarked { tgid, tid } => self.mark_thread(tgid, tid),
            Input::Track { origin, time, payload } => drop(self.track(origin, time, payload)),
            Input::AnnotatedBegin { origin, time, payload, name_at } => {
                self.annotated_begin(origin, time, payload, name_at);
            }
            Input::AppEvent(event) => self.app_event(event),
            Input::SchedulingBegins { begin } => self.begin_scheduling(begin),
            Input::ThreadWatched { pid, tid, since, found } => self.watch_thread(pid, tid, since, found),
            Input::SchedulingLost { cpu, lost, time } => self.lose_scheduling(cpu, lost, time),
            Input::PowerBegins { topology, begin, initial, with_timelines } => {
                self.begin_power(topology, begin, initial, with_timelines);
            }
            Input::Device { event, time, cpu, submitter, comm } => {
                self.device(event, time, cpu, submitter, comm);
            }
            Input::DevicesLost { time } => self.lose_devices(time),
            Input::NamesForgotten { kept } => drop(self.forget_names(|| kept.to_vec())),
            Input::Advance { until } => self.advance(until),
            Input::CallDefinition(definition) => self.call_definition(definition),
            Input::Call(call) => self.call(call),
        }
    }

    /// The window begins at `begin` (ns): what is open then counts from there on.
    #[must_use]
    pub(crate) fn since(self, begin: u64) -> Self {
        let (devices, device_clocks) = (self.devices.since(begin), self.device_clocks.since(begin));
        Self { marks: self.marks.since(begin), devices, device_clocks, ..self }
    }

    /// These processes are drivers, whatever they show.
    #[must_use]
    pub(crate) fn with_drivers(mut self, drivers: BTreeSet<u32>) -> Self {
        self.marks.named_drivers = drivers;
        self
    }

    /// It is known now which CPUs there are, and what of them at `begin` (ns), the begin of the window. Power records that
    /// came before are taken now.
    pub(crate) fn begin_power(
        &mut self,
        topology: &Topology,
        begin: u64,
        initial: &InitialState,
        with_timelines: bool,
    ) {
        self.observe(&Input::PowerBegins { topology, begin, initial, with_timelines });
        self.power = Power::new(topology, begin, initial, with_timelines);
        if let Some(usage) = &mut self.usage {
            self.power.keep_changes();
            usage.begin_power(topology, begin, |cpu| self.power.state_of(cpu));
        }
        for record in self.waiting.take().into_iter().flatten() {
            self.take(&record);
        }
        if let (Some(usage), Some(scheduling)) = (&mut self.usage, &self.scheduling) {
            usage.catch_up(&mut self.power, scheduling);
        }
    }

    /// Takes what happened to a thread, by `scheduling`, to what sections use.
    fn thread_changed(&mut self, tid: u32, now: u64) {
        let Some(scheduling) = &mut self.scheduling else { return };
        if self.usage.is_none() {
            self.marks.causality.keeps_portions = true;
            let mut usage = Box::new(UsageLedgers::new(&self.limits));
            if self.waiting.is_none() {
                self.power.keep_changes();
                usage.begin_power(self.power.topology(), now, |cpu| self.power.state_of(cpu));
                usage.catch_up(&mut self.power, scheduling);
            }
            self.usage = Some(usage);
        }
        if let Some(usage) = &mut self.usage {
            usage.thread_changed(tid, now, scheduling);
        }
    }

    /// The window of scheduling begins at `begin` (ns); its events so far do not count. Without effect where scheduling is
    /// not measured.
    pub(crate) fn begin_scheduling(&mut self, begin: u64) {
        self.observe(&Input::SchedulingBegins { begin });
        if let Some(scheduling) = &mut self.scheduling {
            *scheduling = Scheduling::starting_at(begin).with_room_for(scheduling.room());
            self.usage = None;
        }
    }

    /// Every event of a thread from `since` (ns) on will come; see [`Scheduling::watch`].
    pub(crate) fn watch_thread(&mut self, pid: u32, tid: u32, since: u64, found: Found) {
        self.observe(&Input::ThreadWatched { pid, tid, since, found });
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.watch(pid, tid, since, found);
            self.thread_changed(tid, since);
        }
    }

    /// By the end of the run, at `time` (ns), a CPU has lost this many records of scheduling.
    pub(crate) fn lose_scheduling(&mut self, cpu: u32, lost: u32, time: u64) {
        self.observe(&Input::SchedulingLost { cpu, lost, time });
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.lost_by(cpu, lost, time);
        }
    }

    /// Whether [`Model::begin_power`] is still to come.
    pub(crate) fn waits_for_cpus(&self) -> bool {
        self.waiting.is_some()
    }

    /// How many power records wait for [`Model::begin_power`].
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.as_ref().map_or(0, Vec::len)
    }

    /// Takes a record. Those of marks, power and scheduling come in order of time; of one instant the begins come first.
    /// The lives of threads come in any order.
    #[inline]
    pub(crate) fn record(&mut self, record: &Record) {
        self.observe(&Input::Record(record));
        self.take(record);
    }

    #[inline]
    fn take(&mut self, record: &Record) {
        match record {
            Record::Span(span) => {
                let scheduling = self.scheduling.as_ref();
                self.marks.span(span, scheduling.filter(|scheduling| scheduling.keeps_stretches()));
                if let (Some(usage), Some(scheduling)) = (&mut self.usage, scheduling) {
                    usage.section(span, &self.marks.causality.portions, scheduling);
                }
            }
            Record::Begin(begin) => self.marks.begin(begin),
            Record::TakesPart(thread) => self.marks.sites.mark_thread(thread.tgid, thread.tid),
            Record::Sched(event) => {
                if let Some(scheduling) = &mut self.scheduling {
                    self.marks.causality.thread_changes(event);
                    scheduling.record(event);
                    self.thread_changed(event.tid, event.time);
                }
            }
            Record::Idle(PowerRecord { cpu, time, .. })
            | Record::Frequency(PowerRecord { cpu, time, .. })
            | Record::Hotplug(PowerRecord { cpu, time, .. })
            | Record::Lost { cpu, time } => self.power(*cpu, *time, record),
            Record::FrequencyLimit(_) | Record::Cooling(_) => self.frequency_limits.take(record),
            Record::Fork(fork) => self.marks.causality.create(fork.time.into(), fork.detail, fork.tid),
            Record::Exit(exit) => {
                self.marks.causality.exit(exit.time.into(), exit.tid);
                self.marks.language_models.exit(exit.tgid, exit.tid, exit.time);
            }
            // `why` alone uses it, from the input.
            Record::Exec(_) | Record::Loader(_) | Record::Rival(_) => {}
        }
    }

    fn power(&mut self, cpu: u32, time: u64, record: &Record) {
        if cpu > MAX_CPU {
            // What is lost of a CPU that is not believed is not missed.
            if !matches!(record, Record::Lost { .. }) {
                self.diagnostics.add(DiagnosticKind::CpuOutOfRange, time, cpu, b"");
            }
        } else if let Some(waiting) = &mut self.waiting {
            waiting.push(*record);
        } else if let Some(anomaly) = self.power.record(record) {
            self.diagnostics.add(anomaly.into(), time, cpu, b"");
        }
        if let (Some(usage), Some(scheduling)) = (&mut self.usage, &self.scheduling) {
            usage.take_power(&mut self.power, scheduling);
        }
    }

    /// The states of CPUs and clusters until `end` (ns) in their order, with the limits of frequencies; `None` where there are no
    /// timelines.
    #[must_use]
    pub(crate) fn timelines_until(&self, end: u64) -> Option<Timelines> {
        let timelines = self.power.timelines_until(end)?;
        Some(Timelines { limits: self.frequency_limits.in_order(), ..timelines })
    }

    /// Takes the payload of a begin whose attributes matter. They come in any order; see [`Causality::begins`].
    ///
    /// [`Causality::begins`]: causality::Causality::begins
    pub(crate) fn annotated_begin(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        self.observe(&Input::AnnotatedBegin { origin, time, payload, name_at });
        self.marks.annotated_begin(origin, time, payload, name_at);
    }

    /// Takes a counter, an instant or an end of an asynchronous slice; returns whether it could be read.
    pub(crate) fn track(&mut self, origin: Origin, time: u64, payload: &[u8]) -> bool {
        self.observe(&Input::Track { origin, time, payload });
        self.marks.track(origin, time, payload)
    }

    /// Takes a change of the application's phases, in their order.
    pub(crate) fn app_event(&mut self, event: &AppEvent) {
        self.observe(&Input::AppEvent(event));
        self.marks.app_event(event);
    }

    /// Takes an event of a device's queue, in order of time (ns), from a CPU, by a thread of this name.
    pub(crate) fn device(
        &mut self,
        event: &DeviceEvent<'_>,
        time: u64,
        cpu: u32,
        submitter: Submitter,
        comm: &[u8],
    ) {
        self.observe(&Input::Device { event, time, cpu, submitter, comm });
        let names = &self.marks.names;
        self.devices.take(event, time, submitter, comm, |name| names.text(name));
    }

    /// Events of devices' queues may have been lost by this time (ns).
    pub(crate) fn lose_devices(&mut self, time: u64) {
        self.observe(&Input::DevicesLost { time });
        self.devices.lost(time);
    }

    /// A thread takes part in the accounting: what it showed so far counts.
    pub(crate) fn mark_thread(&mut self, tgid: u32, tid: u32) {
        self.observe(&Input::ThreadMarked { tgid, tid });
        self.marks.sites.mark_thread(tgid, tid);
    }

    /// Takes a section that ended, at whatever place in the order of time; `false` if its place may matter: it has not been
    /// taken then.
    #[inline]
    pub(crate) fn span_anywhere(&mut self, span: &SpanRecord) -> bool {
        let is_taken = self.usage.is_none() && self.marks.span_anywhere(span);
        if is_taken {
            self.observe(&Input::SpanAnywhere(span));
        }
        is_taken
    }

    /// Where there are too many names, forgets those that no result and none of `open` needs; returns whether it did.
    #[inline]
    pub(crate) fn forget_names(&mut self, open: impl FnOnce() -> Vec<u64>) -> bool {
        if !self.marks.names.are_too_many() {
            return false;
        }
        let kept = open();
        self.observe(&Input::NamesForgotten { kept: &kept });
        self.marks.forget_names(|| kept)
    }

    /// Calls of a function come from here on.
    pub(crate) fn call_definition(&mut self, definition: &CallDefinition) {
        self.observe(&Input::CallDefinition(definition));
    }

    /// Takes a call of a function, in any order. Nothing is made of it.
    pub(crate) fn call(&mut self, call: &Call<'_>) {
        self.observe(&Input::Call(call));
    }

    /// Everything up to this moment (ns) has been taken.
    #[inline]
    pub(crate) fn advance(&mut self, until: u64) {
        self.observe(&Input::Advance { until });
        self.marks.advance(until);
    }
}
