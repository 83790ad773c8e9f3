//! Where the operators of a model ran: on which processor, by which provider, and what the changes between them cost.

mod account;
mod collect;
mod providers;
#[cfg(test)]
mod tests;
mod text;

use std::cmp::Reverse;

pub use collect::Collector;
use serde::Serialize;

use self::{
    account::{Account, Calls, DriverCalls, FunctionSum},
    collect::{Function, Kind},
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
    /// Engines whose operators are those of the CPU here, whatever ran them.
    engines_of_all_backends: Vec<String>,
    /// Whether sections are missing: sums are too small, and the time outside of operators too large.
    is_incomplete: bool,
    /// Sections for which there was no room.
    sections_left_out: u64,
}

/// Where the operators of one process ran.
#[derive(Clone, Debug, Serialize)]
struct Process {
    pid: u32,
    comm: Option<String>,
    /// Runs of models that ended: the outermost executions in the runtime.
    runs: u64,
    runs_ns: u64,
    /// Time of runs that no operator on the same thread takes, ns.
    outside_operators_ns: u64,
    /// Calls of operators and parts with no run around them that has ended.
    operators_outside_runs: u64,
    /// Their time, with that of sections around operators, ns.
    operators_outside_runs_ns: u64,
    /// Operators in runs that follow one of another place on the same thread.
    crossings: u64,
    /// Time from the end of the one to the start of the other, ns.
    crossings_ns: u64,
    /// Sorted by time, longest first.
    places: Vec<PlaceRow>,
    /// Sorted by time, longest first.
    operators: Vec<OperatorRow>,
    /// Calls to drivers outside of operators, in runs and elsewhere.
    driver_calls: Vec<DriverCallRow>,
}

/// Operators that one provider ran on one processor.
#[derive(Clone, Debug, Serialize)]
struct PlaceRow {
    /// `None` for the engine's own code, and where a driver runs them and no provider is known.
    provider: Option<String>,
    processor: Option<Processor>,
    /// Whether a driver or a provider runs them, instead of the engine's own code.
    is_handed_over: bool,
    /// Number of distinct names of operators.
    operators: u64,
    /// Number of distinct names of parts.
    parts: u64,
    /// Calls of both, without those of sections around operators.
    calls: u64,
    /// Their time, with that of sections around operators, ns.
    total_ns: u64,
    /// Calls of both that are in runs.
    calls_in_runs: u64,
    /// Time of [`total_ns`](Self::total_ns) that is in runs, ns.
    in_runs_ns: u64,
    /// Calls of operators on the CPU in the parts, which call no driver and have no others in them.
    on_cpu_inside: u64,
    /// Their time, ns.
    on_cpu_inside_ns: u64,
    /// Calls to drivers in the operators and parts.
    driver_calls: Vec<DriverCallRow>,
}

/// Calls to the driver of one device.
#[derive(Clone, Debug, Serialize)]
struct DriverCallRow {
    device: String,
    /// Processor that the driver serves; `None` where it may be several.
    processor: Option<Processor>,
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
    /// Whether it is a part of a graph, which a provider or a driver runs as a whole.
    is_part: bool,
    calls: u64,
    calls_ns: u64,
    /// Longest call, ns.
    max_ns: u64,
    /// Calls that had operators in them, as those of a loop have; not among [`calls`](Self::calls).
    around: u64,
    /// Time of these that was not the operators', ns.
    around_ns: u64,
    /// Operators on the CPU in the part, the one with the most time first.
    on_cpu_inside: Vec<InsideRow>,
    /// Calls to drivers in it.
    driver_calls: Vec<DriverCallRow>,
}

/// Operator on the CPU in a part.
#[derive(Clone, Debug, Serialize)]
struct InsideRow {
    name: String,
    calls: u64,
    total_ns: u64,
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
        let mut pieces = collector.take();
        let comm = |pid: u32| {
            let row = snapshot.phases.iter().find(|row| row.pid == pid);
            row.map(|row| row.comm.clone()).filter(|comm| !comm.is_empty())
        };
        let accounts = account::accounts(&mut pieces).into_iter();
        let mut processes: Vec<Process> = accounts
            .map(|(pid, account)| Process::new(pid, comm(pid), &account, &pieces.functions))
            .collect();
        processes.sort_by_key(|process| (Reverse(process.operators_ns()), process.pid));
        Self {
            processes,
            engines_of_all_backends: providers::of_all_backends(&snapshot.source.engines),
            is_incomplete: snapshot.loss.makes_incomplete("functions") || pieces.left_out > 0,
            sections_left_out: pieces.left_out,
        }
    }
}

impl Process {
    fn new(pid: u32, comm: Option<String>, account: &Account, functions: &[Function]) -> Self {
        let mut operators: Vec<OperatorRow> =
            account.functions.iter().map(|sum| OperatorRow::new(sum, account, functions)).collect();
        operators.sort_by(|one, other| {
            (Reverse(one.total_ns()), &one.name).cmp(&(Reverse(other.total_ns()), &other.name))
        });
        let mut places: Vec<PlaceRow> =
            (0..account.places.len()).map(|place| PlaceRow::new(place, account)).collect();
        places.sort_by_key(|row| Reverse(row.total_ns));
        let in_runs = places.iter().fold(0, |sum: u64, row| sum.saturating_add(row.in_runs_ns));
        Self {
            pid,
            comm,
            runs: account.runs.count,
            runs_ns: account.runs.ns,
            outside_operators_ns: account.runs.ns.saturating_sub(in_runs),
            operators_outside_runs: account.outside_runs.count,
            operators_outside_runs_ns: account.outside_runs.ns,
            crossings: account.crossings.count,
            crossings_ns: account.crossings.ns,
            places,
            operators,
            driver_calls: DriverCallRow::all(&account.driver_calls),
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
            calls_in_runs: 0,
            in_runs_ns: 0,
            on_cpu_inside: 0,
            on_cpu_inside_ns: 0,
            driver_calls: Vec::new(),
        };
        let mut driver_calls = DriverCalls::new();
        for sum in account.functions.iter().filter(|sum| sum.place == number) {
            if sum.calls.count > 0 {
                let is_part = sum.function.kind == Kind::Part;
                row.parts += u64::from(is_part);
                row.operators += u64::from(!is_part);
            }
            row.calls += sum.calls.count;
            row.total_ns = row.total_ns.saturating_add(sum.calls.ns).saturating_add(sum.around.ns);
            row.calls_in_runs += sum.in_runs.count;
            row.in_runs_ns = row.in_runs_ns.saturating_add(sum.in_runs.ns);
            let Calls { count, ns } = sum.all_on_cpu_inside();
            row.on_cpu_inside += count;
            row.on_cpu_inside_ns = row.on_cpu_inside_ns.saturating_add(ns);
            for (device, calls) in &sum.driver_calls {
                driver_calls.entry(device.clone()).or_default().add_all(*calls);
            }
        }
        row.driver_calls = DriverCallRow::all(&driver_calls);
        row
    }
}

impl DriverCallRow {
    fn all(calls: &DriverCalls) -> Vec<Self> {
        let rows = calls.iter().map(|(device, calls)| Self {
            device: device.clone(),
            processor: providers::processor_of(device),
            count: calls.count,
            total_ns: calls.ns,
        });
        rows.collect()
    }
}

impl OperatorRow {
    fn new(sum: &FunctionSum, account: &Account, functions: &[Function]) -> Self {
        let place = &account.places[sum.place];
        let inside = sum.on_cpu_inside.iter().map(|(function, calls)| InsideRow {
            name: functions[*function as usize].name.clone(),
            calls: calls.count,
            total_ns: calls.ns,
        });
        let mut on_cpu_inside: Vec<InsideRow> = inside.collect();
        on_cpu_inside.sort_by_key(|row| Reverse(row.total_ns));
        Self {
            layer: sum.function.tag.layer().code().to_owned(),
            phase: sum.function.tag.phase().code().to_owned(),
            name: sum.function.name.clone(),
            provider: place.provider.clone(),
            processor: place.processor,
            is_part: sum.function.kind == Kind::Part,
            calls: sum.calls.count,
            calls_ns: sum.calls.ns,
            max_ns: sum.max_ns,
            around: sum.around.count,
            around_ns: sum.around.ns,
            on_cpu_inside,
            driver_calls: DriverCallRow::all(&sum.driver_calls),
        }
    }

    /// Returns the time of all calls, ns.
    const fn total_ns(&self) -> u64 {
        self.calls_ns.saturating_add(self.around_ns)
    }
}
