//! A run on one page: how long its work took, where the time went, why the slowest executions were slow, where they ran, and what
//! to look at next.

mod text;

use nntrace_common::layer::Tag;
use serde::Serialize;

use super::{
    placement::{self, Placement},
    run_graph::Refusal,
    why::Answer,
};
use crate::report::{
    headline::{Headline, main_function},
    snapshot::{ClusterRow, FunctionRow, Snapshot},
    top_functions::TopFunctions,
};

/// Version of the form of pages in JSON.
const SCHEMA_VERSION: u32 = 1;

/// Run that a page is about, and where it can be looked at again.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Command of the run, or names of its files.
    pub title: &'a str,
    /// Its files as words of a shell; `None` where they are gone after the page.
    pub files: Option<&'a str>,
    /// Whether operators of engines were asked for.
    pub has_operators: bool,
}

/// A run on one page.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    schema: &'static str,
    schema_version: u32,
    run: String,
    #[serde(flatten)]
    headline: Headline,
    #[serde(flatten)]
    functions: TopFunctions,
    /// Where operators ran.
    placement: Placement,
    /// Sums over the threads; `None` without context switches.
    threads: Option<ThreadTimes>,
    clusters: Vec<Cluster>,
    /// Why the slowest executions were slow.
    why: Option<Answer>,
    /// Why that is not known.
    why_unknown: Option<String>,
    next: Vec<Step>,
    notes: Vec<String>,
}

/// Times of the threads together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct ThreadTimes {
    threads: usize,
    on_cpu_ns: u64,
    runnable_ns: u64,
    asleep_ns: u64,
    unknown_ns: u64,
}

/// Times of a cluster.
#[derive(Clone, Debug, Serialize)]
struct Cluster {
    #[serde(rename = "cluster")]
    name: String,
    cpus: Vec<u32>,
    active_ns: u64,
    /// Mean of the requested frequencies while it was active, as far as they are known, kHz.
    mean_khz: Option<u32>,
    idle_ns: u64,
    offline_ns: u64,
    unknown_ns: u64,
}

/// Suggestion of what to look at next.
#[derive(Clone, Debug, Serialize)]
struct Step {
    /// Description of what it shows.
    shows: &'static str,
    /// Command line, or an option of this one.
    command: String,
}

impl Page {
    /// Creates the page of a run.
    #[must_use]
    pub fn new(
        snapshot: &Snapshot,
        why: Result<Answer, Refusal>,
        operators: &placement::Collector,
        subject: &Subject<'_>,
    ) -> Self {
        let (why, why_unknown) = match why {
            Ok(answer) => (Some(answer), None),
            Err(reason) => (None, Some(reason.to_string())),
        };
        let headline = Headline::of(snapshot, work(snapshot, why.as_ref()));
        Self {
            schema: "nntrace-explain",
            schema_version: SCHEMA_VERSION,
            run: subject.title.to_owned(),
            functions: TopFunctions::of(&snapshot.functions),
            placement: Placement::new(snapshot, operators),
            threads: threads(snapshot),
            clusters: snapshot.clusters.iter().map(Cluster::new).collect(),
            next: next(snapshot, headline.has_work(), why.as_ref(), subject),
            headline,
            why,
            why_unknown,
            notes: snapshot.notes.clone(),
        }
    }
}

/// Returns the function that the answer is about, or else the one that takes most time.
fn work<'a>(snapshot: &'a Snapshot, why: Option<&Answer>) -> Option<&'a FunctionRow> {
    let asked = why.and_then(|answer| {
        let ended = snapshot.functions.iter().filter(|row| row.count > 0);
        let of_answer = ended
            .filter(|row| format!("{}:{}", Tag::new(row.layer, row.phase), row.name) == answer.function());
        of_answer.max_by_key(|row| row.total_ns)
    });
    asked.or_else(|| main_function(&snapshot.functions))
}

fn threads(snapshot: &Snapshot) -> Option<ThreadTimes> {
    if snapshot.threads.is_empty() {
        return None;
    }
    let mut sums = ThreadTimes { threads: snapshot.threads.len(), ..ThreadTimes::default() };
    for row in &snapshot.threads {
        for (sum, ns) in [
            (&mut sums.on_cpu_ns, row.on_cpu_ns),
            (&mut sums.runnable_ns, row.runnable_ns),
            (&mut sums.asleep_ns, row.sleeping_ns.saturating_add(row.uninterruptible_ns)),
            (&mut sums.unknown_ns, row.unknown_ns),
        ] {
            *sum = sum.saturating_add(ns);
        }
    }
    Some(sums)
}

impl Cluster {
    fn new(row: &ClusterRow) -> Self {
        let (mut cycles, mut known) = (0_u128, 0_u128);
        for (khz, ns) in row.active.iter().filter_map(|row| Some((row.khz?, row.ns))) {
            cycles += u128::from(khz) * u128::from(ns);
            known += u128::from(ns);
        }
        Self {
            name: row.cluster.clone(),
            cpus: row.cpus.clone(),
            active_ns: row.active.iter().map(|row| row.ns).sum(),
            mean_khz: cycles.checked_div(known).and_then(|khz| u32::try_from(khz).ok()),
            idle_ns: row.idle.iter().map(|row| row.ns).sum::<u64>() + row.idle_unknown_ns,
            offline_ns: row.offline_ns,
            unknown_ns: row.unknown_ns,
        }
    }
}

/// Returns what to look at next, by what the page leaves open.
fn next(snapshot: &Snapshot, has_work: bool, why: Option<&Answer>, subject: &Subject<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |shows, command: String| steps.push(Step { shows, command });
    if let Some(files) = subject.files {
        if why.is_some() {
            add("every cause, and those of another function with --of", format!("nntrace-bpf why {files}"));
        }
        if has_work {
            add("every section, in a browser", format!("nntrace-bpf export {files} -o run.html"));
            add("the run with faster parts", format!("nntrace-bpf what-if {files} --speed driver=2x"));
        }
        add("all tables: layers and phases, CPUs, clusters", format!("nntrace-bpf replay {files}"));
    } else {
        add("the recording, for why, replay, export and what-if", "-o FOLDER".into());
    }
    if !subject.has_operators {
        add("operators, where an engine runs; each takes microseconds longer", "--engine-level op".into());
    }
    if snapshot.energy.is_none() && !snapshot.clusters.is_empty() {
        add("energy; `nntrace-bpf energy-model init` writes a model", "--energy-model FILE".into());
    }
    steps
}
