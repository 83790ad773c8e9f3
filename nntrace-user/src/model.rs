//! The meaning of records. Pure: no input or output, no clock, no terminal; knows `nntrace-common` only.
//!
//! A run feeds one `Model`, record by record in order of time; the [`Findings`] are everything that came of it.

mod app_phase_numbers;
pub(crate) mod app_phases;
pub(crate) mod app_report_sums;
pub(crate) mod app_reports;
pub(crate) mod async_executions;
pub(crate) mod begin_parsing;
pub(crate) mod capped_table;
pub mod causality;
pub(crate) mod cluster_residency;
pub mod cpu_list;
pub mod cpu_residency;
pub(crate) mod cpu_transition;
pub(crate) mod diagnostics;
pub mod energy;
pub(crate) mod findings;
pub(crate) mod function_names;
pub(crate) mod histogram;
pub(crate) mod idle_stays;
pub mod initial_state;
pub(crate) mod kernel_comparison;
pub(crate) mod layer_phase_times;
pub mod limits;
pub(crate) mod marks;
pub(crate) mod parse_cache;
pub(crate) mod power;
pub(crate) mod run_facts;
pub(crate) mod scheduling;
mod section_sites;
pub(crate) mod small_counts;
pub(crate) mod small_map;
pub(crate) mod stacks;
pub(crate) mod thread_marks;
pub mod timeline;
pub mod topology;
mod tracks;

pub(crate) use cluster_residency::Clusters;
pub use findings::Findings;
pub use marks::Marks;
pub use power::Power;
pub(crate) use scheduling::Scheduling;
pub use topology::Topology;

use std::collections::BTreeSet;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    record::{PowerRecord, Record},
};

use causality::{Origin, Questions};
use diagnostics::DiagnosticCounts;
use initial_state::InitialState;
use limits::Limits;

/// The largest number of a CPU that is believed.
pub(crate) const MAX_CPU: u32 = 4_095;

/// Everything that the records of one run add up to.
pub(crate) struct Model {
    /// Marks, what they cause, and what they belong to.
    pub(crate) marks: Marks,
    /// CPUs and clusters.
    pub(crate) power: Power,
    /// Power records that came before it was known which CPUs there are.
    waiting: Option<Vec<Record>>,
    /// Threads; `None` where context switches are not taken.
    pub(crate) scheduling: Option<Scheduling>,
    /// Diagnostics that only the model can find; the kernel programs of a live run count their own.
    pub(crate) diagnostics: DiagnosticCounts,
}

impl Model {
    /// Nothing yet; no table grows beyond these limits.
    #[must_use]
    pub(crate) fn new(limits: &Limits, questions: Questions, scheduling: Option<Scheduling>) -> Self {
        Self {
            marks: Marks::new(limits, questions),
            power: Power::new(&Topology::default(), 0, &InitialState::default(), false),
            waiting: Some(Vec::new()),
            scheduling,
            diagnostics: DiagnosticCounts::default(),
        }
    }

    /// The window begins at `begin` (ns): what is open then counts from there on.
    #[must_use]
    pub(crate) fn since(self, begin: u64) -> Self {
        Self { marks: self.marks.since(begin), ..self }
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
        self.power = Power::new(topology, begin, initial, with_timelines);
        for record in self.waiting.take().into_iter().flatten() {
            self.record(&record);
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
        match record {
            Record::Span(span) => {
                let scheduling = self.scheduling.as_ref();
                self.marks.span(span, scheduling.filter(|scheduling| scheduling.keeps_stretches()));
            }
            Record::Begin(begin) => self.marks.begin(begin),
            Record::TakesPart(thread) => self.marks.sites.mark_thread(thread.tgid, thread.tid),
            Record::Sched(event) => {
                if let Some(scheduling) = &mut self.scheduling {
                    scheduling.record(event);
                }
            }
            Record::Idle(PowerRecord { cpu, time, .. })
            | Record::Frequency(PowerRecord { cpu, time, .. })
            | Record::Hotplug(PowerRecord { cpu, time, .. })
            | Record::Lost { cpu, time } => self.power(*cpu, *time, record),
            Record::Fork(fork) => self.marks.causality.create(fork.time, fork.detail, fork.tid),
            Record::Exit(exit) => self.marks.causality.exit(exit.time, exit.tid),
            Record::Exec(_) | Record::Loader(_) => {}
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
    }

    /// Takes the payload of a begin whose attributes matter. They come in any order; see [`Causality::begins`].
    ///
    /// [`Causality::begins`]: causality::Causality::begins
    pub(crate) fn annotated_begin(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        self.marks.annotated_begin(origin, time, payload, name_at);
    }

    /// Everything up to this moment (ns) has been taken.
    #[inline]
    pub(crate) fn advance(&mut self, until: u64) {
        self.marks.advance(until);
    }
}
