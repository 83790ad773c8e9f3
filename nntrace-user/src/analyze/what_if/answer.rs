//! Answers: what other speeds make of a run, and what to speed up first.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use super::{
    cpus::{self, Cpus},
    critical_path::{self, Part},
    frequency::{self, Frequency},
    predict::{Latencies, Schedule, Speeds, unlimited},
    reservations::{self, Predicted},
    selection::{Selection, Speed},
};
use crate::{
    analyze::run_graph::{
        Refusal,
        build::{Arrivals, BuildOptions, Built, graph},
        collect::Collector,
        frequencies::Frequencies,
        graph::{Graph, Kind, Trust},
    },
    model::{Findings, timeline::Timelines},
};

/// Version of the form of answers in JSON.
const SCHEMA_VERSION: u32 = 1;
/// Factors of the curve of gains.
const CURVE: [f64; 7] = [1.05, 1.1, 1.25, 1.5, 2.0, 4.0, f64::INFINITY];
/// Components that a ranking has at most: those with most work on the critical path.
const MOST_RANKED: usize = 32;

/// CPUs of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuCount {
    /// This number.
    Some(u32),
    /// As many as there are threads.
    Unlimited,
}

/// Options of predictions.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Other speeds.
    pub speeds: Vec<Speed>,
    /// Other frequencies of clusters.
    pub frequencies: Vec<Frequency>,
    /// CPUs; `None`: those of the recording where its context switches are known, else unlimited.
    pub cpus: Option<CpuCount>,
    /// Whether threads stay on the CPUs that they ran on.
    pub pinned: bool,
    /// Input from outside; `None`: as it seems.
    pub arrivals: Option<Arrivals>,
    /// Function whose sections are iterations.
    pub iteration_root: Option<String>,
    /// Whether components are ranked by what speeding them up gains.
    pub rank: bool,
}

/// Trust in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Confidence {
    /// Everything that threads wait for is known from marks or the kernel.
    Explicit,
    /// Some of it is inferred.
    Mixed,
    /// Everything that threads wait for is inferred, or nothing is known.
    Inferred,
}

/// Figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    /// As recorded.
    pub(super) recorded: f64,
    /// As the model has it with the recorded speeds.
    pub(super) modelled: f64,
    /// As predicted.
    pub(super) predicted: f64,
    /// Change from modelled to predicted, as a share.
    pub(super) change: f64,
}

impl Figure {
    fn new(recorded: f64, modelled: f64, predicted: f64) -> Self {
        Self { recorded, modelled, predicted, change: change(modelled, predicted) }
    }
}

/// Returns a change as a share; 0 of nothing.
fn change(before: f64, after: f64) -> f64 {
    if before > 0.0 { after / before - 1.0 } else { 0.0 }
}

/// Other speed of what has a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct NamedSpeed {
    pub(super) name: String,
    /// Factor; null for infinitely fast.
    pub(super) factor: Option<f64>,
    /// How many functions it has.
    pub(super) functions: usize,
}

/// Figures of iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct IterationFigures {
    pub(super) count: usize,
    /// Median latency, ns.
    pub(super) p50_ns: Figure,
    /// 95th percentile of latencies, ns.
    pub(super) p95_ns: Figure,
    /// Iterations a second of the makespan.
    pub(super) per_second: Figure,
}

/// Point of the curve of gains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CurvePoint {
    /// Factor of all that was chosen; null for infinitely fast.
    pub(super) factor: Option<f64>,
    pub(super) makespan_ns: u64,
    pub(super) change: f64,
}

/// Share of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PathPart {
    /// Component, or what is waited for.
    pub(super) name: String,
    pub(super) modelled_ns: u64,
    pub(super) predicted_ns: u64,
}

/// Work of a component, as recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Work {
    /// Component.
    pub(super) name: String,
    pub(super) work_ns: u64,
}

/// Edges of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct EdgeCount {
    pub(super) kind: &'static str,
    pub(super) trust: &'static str,
    pub(super) count: u64,
}

/// Component in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ranked {
    pub(super) name: String,
    /// All work of it, ns.
    pub(super) work_ns: u64,
    /// Its work on the critical path, ns.
    pub(super) path_ns: u64,
    /// Change of the makespan if it is twice as fast.
    pub(super) twice: f64,
    /// Change of the makespan if it is infinitely fast: the bound.
    pub(super) bound: f64,
}

/// Prediction of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    schema: &'static str,
    schema_version: u32,
    pub(super) speeds: Vec<NamedSpeed>,
    /// Frequencies by cluster, kHz.
    pub(super) frequencies: Vec<(String, u32)>,
    /// CPUs; null for as many as there are threads.
    pub(super) cpus: Option<u32>,
    /// `open` or `closed`.
    pub(super) arrivals: &'static str,
    pub(super) threads: usize,
    pub(super) confidence: Confidence,
    /// Time from the first mark to the last one, ns.
    pub(super) makespan_ns: Figure,
    /// Predicted makespan with the latencies that 5 % and 95 % of the hand-overs do not exceed, ns.
    pub(super) interval_ns: (u64, u64),
    /// Missing where no section is an iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) iterations: Option<IterationFigures>,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) critical_path: Vec<PathPart>,
    /// Work of all threads by component, the most first.
    pub(super) work: Vec<Work>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ranking: Vec<Ranked>,
    pub(super) edges: Vec<EdgeCount>,
    /// Hand-overs and other edges that lead backwards in recorded time.
    pub(super) recorded_violations: u64,
    /// Hand-overs that the prediction takes before they are given.
    pub(super) predicted_violations: u64,
    pub(super) assumptions: Vec<String>,
    pub(super) violated: Vec<String>,
}

/// Model of a run that is asked.
struct Asked<'a> {
    built: &'a Built<'a>,
    cpus: Option<Cpus>,
}

impl Asked<'_> {
    fn schedule(&self, graph: &Graph, speeds: &Speeds, latencies: &Latencies) -> Schedule {
        match &self.cpus {
            Some(cpus) => cpus::limited(graph, speeds, latencies, cpus),
            None => unlimited(graph, speeds, latencies),
        }
    }

    fn makespan(&self, graph: &Graph, speeds: &Speeds) -> u64 {
        self.schedule(graph, speeds, &Latencies::Measured).makespan(graph)
    }
}

impl Answer {
    /// Predicts a run.
    ///
    /// # Errors
    /// With the reason, when the run has too many events or none, when a name means nothing in it, or when frequencies are asked
    /// for that are not known.
    pub fn new(
        collector: &Collector,
        findings: &Findings<'_>,
        timelines: Option<&Timelines>,
        options: &Options,
    ) -> Result<Self, Refusal> {
        let build =
            BuildOptions { arrivals: options.arrivals, iteration_root: options.iteration_root.as_deref() };
        let events = collector.finish().map_err(Refusal::Run)?;
        let built = graph(&events, findings, &build).map_err(Refusal::Run)?;
        Self::of(&built, findings, timelines, options).map_err(Refusal::Question)
    }

    fn of(
        built: &Built<'_>,
        findings: &Findings<'_>,
        timelines: Option<&Timelines>,
        options: &Options,
    ) -> Result<Self, String> {
        let Built { graph, components, facts, .. } = built;
        let selection = Selection::new(&options.speeds, components)?;
        let frequencies = timelines.map(|timelines| Frequencies::new(findings.topology, timelines));
        let mut scaled = graph.clone();
        for frequency in &options.frequencies {
            let known = frequencies
                .as_ref()
                .ok_or("the run has no event of CPUs: --freq needs those of frequencies")?;
            frequency.scale(known, &mut scaled)?;
        }
        let asked = Asked { built, cpus: cpus(built, options) };
        let (recorded, speeds) = (Speeds::recorded(components.len()), selection.speeds(components));
        let measured = &Latencies::Measured;
        let modelled = asked.schedule(graph, &recorded, measured);
        let predicted = asked.schedule(&scaled, &speeds, measured);
        let at = |percent| {
            let latencies = Latencies::percentile(graph, percent);
            asked.schedule(&scaled, &speeds, &latencies).makespan(graph)
        };
        let (low, high, exact) = (at(5), at(95), predicted.makespan(graph));
        let base = modelled.makespan(graph);
        let curve: Vec<CurvePoint> = if selection.components.is_empty() {
            Vec::new()
        } else {
            let point = |factor: f64| {
                let makespan_ns = asked.makespan(&scaled, &selection.at(factor, components));
                let change = change(base as f64, makespan_ns as f64);
                CurvePoint { factor: Some(factor).filter(|factor| factor.is_finite()), makespan_ns, change }
            };
            CURVE.map(point).to_vec()
        };
        let mut answer = Self {
            schema: "nntrace-what-if",
            schema_version: SCHEMA_VERSION,
            speeds: selection
                .names
                .iter()
                .map(|(name, factor, functions)| NamedSpeed {
                    name: name.clone(),
                    factor: Some(*factor).filter(|factor| factor.is_finite()),
                    functions: *functions,
                })
                .collect(),
            frequencies: options.frequencies.iter().map(|it| (it.cluster.clone(), it.khz)).collect(),
            cpus: asked.cpus.as_ref().map(|cpus| cpus.count),
            arrivals: if facts.is_open { "open" } else { "closed" },
            threads: facts.threads,
            confidence: confidence(built),
            makespan_ns: Figure::new(graph.recorded_makespan() as f64, base as f64, exact as f64),
            interval_ns: (low.min(exact), high.max(exact)),
            iterations: iterations(graph, &modelled, &predicted),
            curve,
            critical_path: path(&asked, &scaled, (&recorded, &modelled), (&speeds, &predicted)),
            work: work(built),
            ranking: if options.rank { ranking(&asked, &scaled, &speeds) } else { Vec::new() },
            edges: facts
                .edges
                .iter()
                .map(|((kind, trust), count)| EdgeCount {
                    kind: kind.name(),
                    trust: trust.name(),
                    count: *count,
                })
                .collect(),
            recorded_violations: facts.violations,
            predicted_violations: predicted.violations(graph),
            assumptions: Vec::new(),
            violated: Vec::new(),
        };
        let varied =
            frequencies.map(|frequencies| frequency::varied(&frequencies, graph)).unwrap_or_default();
        let chosen: Vec<u32> = selection.components.iter().map(|(number, _)| *number).collect();
        let facts = Predicted {
            cpus: asked.cpus.as_ref(),
            fit: answer.makespan_ns.modelled / answer.makespan_ns.recorded.max(1.0),
            violations: answer.predicted_violations,
            is_monotone: answer.curve.is_sorted_by(|a, b| a.makespan_ns >= b.makespan_ns),
            chosen: &chosen,
            varied: &varied,
        };
        answer.assumptions = reservations::assumptions(&facts, &built.facts);
        answer.violated = reservations::violated(&facts, built, findings);
        Ok(answer)
    }
}

impl Trust {
    /// Word in results.
    const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Inferred => "inferred",
        }
    }
}

/// Returns the CPUs; `None` for as many as there are threads.
fn cpus(built: &Built<'_>, options: &Options) -> Option<Cpus> {
    let facts = &built.facts;
    let count = match options.cpus {
        Some(CpuCount::Some(count)) => count,
        None if facts.switched == facts.threads => facts.host_cpus,
        Some(CpuCount::Unlimited) | None => return None,
    };
    let allowed = if options.pinned { facts.cpus.clone() } else { Vec::new() };
    (count > 0).then_some(Cpus { count, allowed, slice: facts.longest_wait.max(cpus::SLICE) })
}

fn confidence(built: &Built<'_>) -> Confidence {
    let facts = &built.facts;
    let has = |trust| facts.edges.keys().any(|(_, other)| *other == trust);
    match (has(Trust::Explicit), has(Trust::Inferred)) {
        (true, true) => Confidence::Mixed,
        (true, false) => Confidence::Explicit,
        (false, false) if facts.threads == 1 => Confidence::Explicit,
        (false, _) => Confidence::Inferred,
    }
}

fn iterations(graph: &Graph, modelled: &Schedule, predicted: &Schedule) -> Option<IterationFigures> {
    let recorded = Schedule { times: graph.points.iter().map(|point| point.time).collect(), done: None };
    let all = [&recorded, modelled, predicted];
    let latencies = all.map(|schedule| {
        let mut latencies = schedule.iterations(graph);
        latencies.sort_unstable();
        latencies
    });
    let count = latencies[0].len();
    if count == 0 {
        return None;
    }
    let percentile = |percent: usize| {
        let [recorded, modelled, predicted] =
            [0, 1, 2].map(|place: usize| latencies[place][(count * percent).div_ceil(100).max(1) - 1] as f64);
        Figure::new(recorded, modelled, predicted)
    };
    let rates = all.map(|schedule| match schedule.makespan(graph) {
        0 => 0.0,
        ns => count as f64 * 1e9 / ns as f64,
    });
    Some(IterationFigures {
        count,
        p50_ns: percentile(50),
        p95_ns: percentile(95),
        per_second: Figure::new(rates[0], rates[1], rates[2]),
    })
}

/// Returns the critical paths with the recorded speeds and as predicted, the longest parts first.
fn path(
    asked: &Asked<'_>,
    scaled: &Graph,
    (recorded, modelled): (&Speeds, &Schedule),
    (speeds, predicted): (&Speeds, &Schedule),
) -> Vec<PathPart> {
    let Built { graph, components, .. } = asked.built;
    let before = critical_path::parts(graph, modelled, recorded, &Latencies::Measured);
    let after = critical_path::parts(scaled, predicted, speeds, &Latencies::Measured);
    let mut parts: Vec<Part> = before.keys().chain(after.keys()).copied().collect();
    parts.sort_unstable();
    parts.dedup();
    let ns = |all: &BTreeMap<Part, u64>, part: &Part| all.get(part).copied().unwrap_or(0);
    let mut rows: Vec<PathPart> = parts
        .iter()
        .map(|part| PathPart {
            name: match part {
                Part::Work(component) => components.name(*component),
                Part::Latency(kind) => latency_name(*kind),
                Part::Cpu => "waiting for a CPU".into(),
                Part::Fixed => "waiting, for what is not known".into(),
                Part::Arrival => "waiting for input from outside".into(),
                Part::Begin => "before its first thread began".into(),
            },
            modelled_ns: ns(&before, part),
            predicted_ns: ns(&after, part),
        })
        .collect();
    rows.sort_by(|a, b| {
        (b.modelled_ns.max(b.predicted_ns), &a.name).cmp(&(a.modelled_ns.max(a.predicted_ns), &b.name))
    });
    rows
}

fn latency_name(kind: Kind) -> String {
    format!("latency of {}", kind.name())
}

/// Returns the work of each component, as recorded.
fn work(built: &Built<'_>) -> Vec<Work> {
    let sums = sums(&built.graph, &Speeds::recorded(built.components.len()), built.components.len());
    let rows = (0..).zip(sums).filter(|(_, ns)| *ns > 0);
    let mut rows: Vec<Work> =
        rows.map(|(number, work_ns)| Work { name: built.components.name(number), work_ns }).collect();
    rows.sort_by(|a, b| (b.work_ns, &a.name).cmp(&(a.work_ns, &b.name)));
    rows
}

/// Returns the length of the work of each component, ns.
fn sums(graph: &Graph, speeds: &Speeds, components: usize) -> Vec<u64> {
    let mut sums = vec![0_u64; components];
    for point in &graph.points {
        sums[point.component as usize] += speeds.length(point);
    }
    sums
}

/// Ranks components by what twice their speed gains, on top of other speeds.
fn ranking(asked: &Asked<'_>, graph: &Graph, speeds: &Speeds) -> Vec<Ranked> {
    let components = asked.built.components;
    let schedule = asked.schedule(graph, speeds, &Latencies::Measured);
    let base = schedule.makespan(graph) as f64;
    let path = critical_path::parts(graph, &schedule, speeds, &Latencies::Measured);
    let work = sums(graph, speeds, components.len());
    let path_ns = |number: u32| path.get(&Part::Work(number)).copied().unwrap_or(0);
    let mut numbers: Vec<u32> = components.iter().map(|(number, _)| number).collect();
    numbers.sort_by_key(|number| (Reverse((path_ns(*number), work[*number as usize])), *number));
    numbers.truncate(MOST_RANKED);
    let mut ranked: Vec<Ranked> = numbers
        .into_iter()
        .map(|number| {
            let at = |factor| {
                let makespan = asked.makespan(graph, &speeds.clone().times(number, factor));
                change(base, makespan as f64)
            };
            Ranked {
                name: components.name(number),
                work_ns: work[number as usize],
                path_ns: path_ns(number),
                twice: at(2.0),
                bound: at(f64::INFINITY),
            }
        })
        .collect();
    ranked.sort_by(|a, b| {
        a.twice.total_cmp(&b.twice).then(a.bound.total_cmp(&b.bound)).then_with(|| a.name.cmp(&b.name))
    });
    ranked
}
