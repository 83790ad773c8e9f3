//! Answers: why some executions were slow.

use std::{cmp::Reverse, collections::BTreeMap};

use nntrace_common::{stack::ON_NO_STACK, stamp::Stamp};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::{
    chain::Walker,
    compared::{Compared, Run},
    crowding,
    describe::{Description, describe},
    executions::{self, Choice, Chosen, Execution, Groups, Reason, Share},
    pauses,
    rounding::rounded,
    split::split,
    tally::Tally,
};
use crate::{
    analyze::run_graph::{
        Collector, Refusal,
        build::{Arrivals, BuildOptions, graph},
        collect::Events,
        graph::Graph,
    },
    model::{Findings, timeline::Timelines},
};

/// Version of the form of answers in JSON.
const SCHEMA_VERSION: u32 = 1;

/// Options of the question.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Function; `None`: the one that takes most time, of iterations where there are some.
    pub function: Option<String>,
    /// Share of the executions that are slow.
    pub slowest: Share,
}

/// Executions of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    pub(super) count: usize,
    pub(super) mean_ns: u64,
    pub(super) shortest_ns: u64,
    pub(super) longest_ns: u64,
}

/// Part of the difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) ns: i64,
    #[serde(flatten)]
    pub(super) description: Description,
}

/// Answer to why executions were slow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub(super) schema: &'static str,
    pub(super) schema_version: u32,
    pub(super) function: String,
    /// Reason for the function: `asked`, `iterations` or `longest`.
    pub(super) chosen: &'static str,
    pub(super) executions: usize,
    pub(super) slow: Group,
    pub(super) typical: Group,
    /// Mean of the slow ones less that of the typical ones.
    pub(super) difference_ns: i64,
    /// Parts that add up to the difference, the largest first.
    pub(super) parts: Vec<Row>,
    /// Facts that are not known.
    pub(super) notes: Vec<String>,
    /// Whether the run has context switches.
    #[serde(skip)]
    pub(super) has_switches: bool,
}

impl Answer {
    /// Answers why executions of a run were slow.
    ///
    /// # Errors
    /// With the reason, when the run has too many events or none, when the function means nothing in it, or when there are too few
    /// executions.
    pub fn new(
        collector: &Collector,
        findings: &Findings<'_>,
        timelines: Option<&Timelines>,
        options: &Options,
    ) -> Result<Self, Refusal> {
        let events = collector.finish().map_err(Refusal::Run)?;
        // Pauses before input are no part of an execution.
        let build = BuildOptions { arrivals: Some(Arrivals::Closed), iteration_root: None };
        let built = graph(&events, findings, &build).map_err(Refusal::Run)?;
        let chosen =
            executions::choose(&events, options.function.as_deref()).map_err(|choice| match choice {
                Choice::Name(reason) => Refusal::Question(reason),
                Choice::TooFew(reason) => Refusal::Run(reason),
            })?;
        let run = Run::new(&built, findings, timelines, &events);
        Ok(run.answer(&events, chosen, timelines, options.slowest))
    }
}

impl Run<'_> {
    fn answer(
        &self,
        events: &Events,
        chosen: Chosen,
        timelines: Option<&Timelines>,
        slowest: Share,
    ) -> Answer {
        let Chosen { component, reason, executions } = chosen;
        let count = executions.len();
        let Groups { slow, typical } = executions::groups(executions, slowest);
        let released: FxHashMap<u32, u32> = events
            .spans
            .iter()
            .zip(&self.built.spans)
            .filter_map(|(span, (_, end))| Some((*end, span.lock?)))
            .collect();
        let lock_at = |point: u32| released.get(&point).copied();
        let was_woken_by_device =
            |thread: u32, waker: u32, times| self.was_woken_by_device(thread, waker, times);
        let walker = Walker::new(&self.built.graph, &self.built.threads, &lock_at, &was_woken_by_device);
        let nested = Nested::new(events);
        let tally = |execution: &Execution| {
            let mut tally = Tally { first: execution.first, ..Tally::default() };
            let thread = self.thread_of(&self.built.graph, execution.span);
            walker.walk(thread, execution.begin, execution.end, &mut |link| tally.add(&link, self));
            nested.count(events, execution, &mut tally.calls);
            tally
        };
        let tallies = |all: &[Execution]| all.iter().map(&tally).collect::<Vec<Tally>>();
        let (of_slow, of_typical) = (tallies(&slow), tallies(&typical));
        let times = |all: &[Execution]| all.iter().map(|it| (it.begin, it.end)).collect::<Vec<_>>();
        let (slow_times, typical_times) = (times(&slow), times(&typical));
        let ran = || of_slow.iter().chain(&of_typical).flat_map(|tally| tally.ran.values());
        let compared = Compared {
            run: self,
            slow: &of_slow,
            typical: &of_typical,
            slow_times: &slow_times,
            typical_times: &typical_times,
            knows_frequencies: ran().any(|ran| !ran.on.is_empty()),
            limits: timelines.map(|timelines| &timelines.limits),
        };
        let pause = pauses::note(&slow, &typical);
        let typical_spans: Vec<u32> = typical.iter().map(|execution| execution.span).collect();
        let (slow, typical) = (Group::new(&slow), Group::new(&typical));
        let difference_ns = slow.mean_ns.cast_signed() - typical.mean_ns.cast_signed();
        let mut notes: Vec<String> = pause.into_iter().collect();
        notes.extend(self.crowding(events, &of_typical, &typical_spans));
        if slow.count == 1 {
            notes.push("one slow execution only: it may be chance".into());
        }
        if ran().any(|ran| ran.undecided > 0) {
            notes.push("context switches are not known: whether it ran or waited is only where marks show it (--level sched)".into());
        } else if !compared.knows_frequencies {
            notes.push(
                "frequencies are not known: what they make longer is among the work in each call".into(),
            );
        }
        Answer {
            schema: "nntrace-why",
            schema_version: SCHEMA_VERSION,
            function: self.built.components.name(component),
            chosen: match reason {
                Reason::Asked => "asked",
                Reason::Iterations => "iterations",
                Reason::Longest => "longest",
            },
            executions: count,
            slow,
            typical,
            difference_ns,
            parts: compared.rows(difference_ns),
            notes,
            has_switches: events.scheduling.is_some(),
        }
    }

    /// Returns the note on threads of the same processes that have the CPUs.
    fn crowding(&self, events: &Events, typical: &[Tally], spans: &[u32]) -> Option<String> {
        let process = |tid: u32| self.process_of(tid).unwrap_or(tid);
        let own: FxHashSet<u32> =
            spans.iter().map(|span| process(events.spans[*span as usize].tid)).collect();
        crowding::note(typical, |tid| own.contains(&process(tid)), self.cpus())
    }

    fn thread_of(&self, graph: &Graph, span: u32) -> u32 {
        let (begin, _) = self.built.spans[span as usize];
        graph.points[begin as usize].thread
    }
}

impl Group {
    fn new(all: &[Execution]) -> Self {
        let lengths = || all.iter().map(Execution::length);
        let sum: u128 = lengths().map(u128::from).sum();
        let count = all.len().max(1) as u128;
        Self {
            count: all.len(),
            mean_ns: u64::try_from((sum + count / 2) / count).unwrap_or(u64::MAX),
            shortest_ns: lengths().min().unwrap_or(0),
            longest_ns: lengths().max().unwrap_or(0),
        }
    }
}

impl Compared<'_> {
    /// Returns the parts of the difference, rounded so that they add up to it.
    fn rows(&self, difference_ns: i64) -> Vec<Row> {
        let split = split(self.slow, self.typical);
        let mut sums: BTreeMap<Description, i128> = BTreeMap::new();
        for (part, numerator) in &split.parts {
            *sums.entry(describe(*part, self)).or_default() += numerator;
        }
        let numerators: Vec<i128> = sums.values().copied().collect();
        let whole = rounded(&numerators, split.denominator.max(1), i128::from(difference_ns));
        let rows = sums.into_keys().zip(whole).filter(|(_, ns)| *ns != 0);
        let mut rows: Vec<Row> = rows
            .map(|(description, ns)| Row { ns: i64::try_from(ns).unwrap_or(i64::MAX), description })
            .collect();
        rows.sort_by(|a, b| {
            (Reverse(a.ns.abs()), &a.description).cmp(&(Reverse(b.ns.abs()), &b.description))
        });
        rows
    }
}

/// Sections of each thread by their begins.
struct Nested(FxHashMap<u32, Vec<(Stamp, u32)>>);

impl Nested {
    fn new(events: &Events) -> Self {
        let mut all: FxHashMap<u32, Vec<(Stamp, u32)>> = FxHashMap::default();
        for (number, span) in (0..).zip(&events.spans) {
            all.entry(span.tid).or_default().push((span.begin, number));
        }
        for spans in all.values_mut() {
            spans.sort_unstable();
        }
        Self(all)
    }

    /// Counts the sections of an execution by function, itself included.
    fn count(&self, events: &Events, execution: &Execution, calls: &mut BTreeMap<u32, u64>) {
        let own = &events.spans[execution.span as usize];
        let Some(spans) = self.0.get(&own.tid) else { return };
        let first = spans.partition_point(|(begin, _)| *begin < own.begin);
        for (_, number) in spans[first..].iter().take_while(|(begin, _)| *begin <= own.end) {
            let span = &events.spans[*number as usize];
            if (span.depth >= own.depth || own.depth == ON_NO_STACK) && span.end <= own.end {
                *calls.entry(span.component).or_default() += 1;
            }
        }
    }
}
