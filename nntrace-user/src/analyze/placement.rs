//! Where the operators of a model ran: on which processor, by which provider, and what the changes between them cost.

mod account;
mod collect;
mod providers;
#[cfg(test)]
mod tests;
mod text;

use std::{cmp::Reverse, collections::BTreeMap};

pub use collect::Collector;
use nntrace_common::{driver_calls, layer::Layer};
use serde::Serialize;

use self::{
    account::{Account, Calls, FunctionSum},
    providers::Processor,
};
use crate::report::snapshot::Snapshot;

/// Version of the form of pages in JSON.
const SCHEMA_VERSION: u32 = 1;

/// Where the operators of a run's processes ran.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    schema: &'static str,
    schema_version: u32,
    run: String,
    #[serde(flatten)]
    placement: Placement,
    notes: Vec<String>,
}

/// Where the operators of processes ran.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Placement {
    processes: Vec<Process>,
    /// Whether sections are missing, so that figures are too small.
    is_incomplete: bool,
    /// Sections that there was no room for.
    sections_left_out: u64,
}

/// Where the operators of one process ran.
#[derive(Clone, Debug, Serialize)]
struct Process {
    pid: u32,
    comm: String,
    /// Runs of models that ended: the outermost executions in the runtime.
    runs: u64,
    runs_ns: u64,
    /// Time of runs that no operator takes, ns.
    outside_operators_ns: u64,
    /// Times that an operator in a run followed one of another place.
    crossings: u64,
    /// Time from the end of the one to the start of the other, ns: what the crossings cost at most, outside of operators.
    crossings_ns: u64,
    /// The one with the most time first.
    places: Vec<PlaceRow>,
    /// The one with the most time first.
    operators: Vec<OperatorRow>,
}

/// Operators that one provider ran on one processor.
#[derive(Clone, Debug, Serialize)]
struct PlaceRow {
    /// `None` for the engine's own code, and where a driver has them and no provider is known.
    provider: Option<String>,
    processor: Option<Processor>,
    /// Whether a driver or a provider has them, instead of the engine's own code.
    is_handed_over: bool,
    /// Different operators.
    operators: u64,
    /// Different parts of graphs, which have operators in them.
    parts: u64,
    /// Calls of both.
    calls: u64,
    /// Their time, ns.
    total_ns: u64,
    /// Calls of operators on the CPU in the parts.
    on_cpu_inside: u64,
    /// Their time, ns.
    on_cpu_inside_ns: u64,
    driver_calls: Vec<DriverCallRow>,
}

/// Calls of the driver of one device.
#[derive(Clone, Debug, Serialize)]
struct DriverCallRow {
    device: String,
    count: u64,
    total_ns: u64,
}

/// Operator, or part of a graph.
#[derive(Clone, Debug, Serialize)]
struct OperatorRow {
    layer: String,
    phase: String,
    name: String,
    provider: Option<String>,
    processor: Option<Processor>,
    kind: OperatorKind,
    calls: u64,
    /// Their time without operators in them, ns.
    total_ns: u64,
    max_ns: u64,
}

/// Kind of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum OperatorKind {
    /// An operator.
    Operator,
    /// A part of a graph, that a provider or a driver runs as a whole.
    Part,
    /// A section around operators, such as a loop.
    Around,
    /// A call of a driver, outside of operators.
    DriverCall,
}

impl Page {
    /// Creates the page of a run.
    #[must_use]
    pub fn new(snapshot: &Snapshot, collector: &Collector, title: &str) -> Self {
        Self {
            schema: "nntrace-where",
            schema_version: SCHEMA_VERSION,
            run: title.to_owned(),
            placement: Placement::new(snapshot, collector),
            notes: snapshot.notes.clone(),
        }
    }
}

impl Placement {
    /// Returns where the collected operators ran.
    pub(super) fn new(snapshot: &Snapshot, collector: &Collector) -> Self {
        let mut pieces = collector.finish();
        let comm = |pid: u32| snapshot.phases.iter().find(|row| row.pid == pid).map(|row| row.comm.clone());
        let accounts = account::accounts(&mut pieces).into_iter();
        let mut processes: Vec<Process> = accounts
            .map(|(pid, account)| Process::new(pid, comm(pid).unwrap_or_default(), &account))
            .collect();
        processes.sort_by_key(|process| (Reverse(process.operators_ns()), process.pid));
        Self {
            processes,
            is_incomplete: snapshot.loss.makes_incomplete("functions") || pieces.left_out > 0,
            sections_left_out: pieces.left_out,
        }
    }
}

impl Process {
    fn new(pid: u32, comm: String, account: &Account) -> Self {
        let mut operators: Vec<OperatorRow> =
            account.functions.iter().map(|sum| OperatorRow::new(sum, account)).collect();
        operators.sort_by_key(|row| (Reverse(row.total_ns), row.name.clone()));
        let rows = (0..account.places.len()).map(|place| PlaceRow::new(place, account));
        let mut places: Vec<PlaceRow> = rows.collect();
        places.sort_by_key(|row| Reverse(row.total_ns));
        Self {
            pid,
            comm,
            runs: account.runs.count,
            runs_ns: account.runs.ns,
            outside_operators_ns: account.runs.ns.saturating_sub(account.in_runs_ns),
            crossings: account.crossings.count,
            crossings_ns: account.crossings.ns,
            places,
            operators,
        }
    }

    /// Returns the time of all operators and parts, ns.
    fn operators_ns(&self) -> u64 {
        self.places.iter().fold(0, |sum, row| sum.saturating_add(row.total_ns))
    }
}

impl PlaceRow {
    fn new(number: usize, account: &Account) -> Self {
        let place = &account.places[number];
        let mut row = Self {
            provider: place.provider.clone(),
            processor: place.processor,
            is_handed_over: place.is_handed_over,
            operators: 0,
            parts: 0,
            calls: 0,
            total_ns: 0,
            on_cpu_inside: 0,
            on_cpu_inside_ns: 0,
            driver_calls: Vec::new(),
        };
        let mut driver_calls: BTreeMap<&str, Calls> = BTreeMap::new();
        for sum in account.functions.iter().filter(|sum| sum.place == number) {
            let kind = OperatorKind::of(sum);
            row.operators += u64::from(kind == OperatorKind::Operator);
            row.parts += u64::from(kind == OperatorKind::Part);
            if kind != OperatorKind::Around {
                row.calls += sum.calls.count;
            }
            row.total_ns = row.total_ns.saturating_add(sum.calls.ns);
            row.on_cpu_inside += sum.on_cpu_inside.count;
            row.on_cpu_inside_ns = row.on_cpu_inside_ns.saturating_add(sum.on_cpu_inside.ns);
            for (device, calls) in &sum.driver_calls {
                let all = driver_calls.entry(device).or_default();
                all.count += calls.count;
                all.ns = all.ns.saturating_add(calls.ns);
            }
        }
        let rows = driver_calls.into_iter().map(|(device, calls)| DriverCallRow {
            device: device.to_owned(),
            count: calls.count,
            total_ns: calls.ns,
        });
        row.driver_calls = rows.collect();
        row
    }
}

impl OperatorRow {
    fn new(sum: &FunctionSum, account: &Account) -> Self {
        let place = &account.places[sum.place];
        Self {
            layer: sum.function.tag.layer().code().to_owned(),
            phase: sum.function.tag.phase().code().to_owned(),
            name: sum.function.name.clone(),
            provider: place.provider.clone(),
            processor: place.processor,
            kind: OperatorKind::of(sum),
            calls: sum.calls.count,
            total_ns: sum.calls.ns,
            max_ns: sum.max_ns,
        }
    }
}

impl OperatorKind {
    fn of(sum: &FunctionSum) -> Self {
        if driver_calls::device_of(&sum.function.name).is_some() && sum.function.tag.layer() == Layer::Driver
        {
            Self::DriverCall
        } else if sum.is_part {
            Self::Part
        } else if sum.is_around {
            Self::Around
        } else {
            Self::Operator
        }
    }
}
