//! Runs: what differs between them besides their figures, and the work that sums are divided by.

use std::collections::BTreeSet;

use super::metric::Per;
use crate::{
    model::{cpu_list, plurals::counted},
    report::{
        number_format,
        snapshot::{ClusterRow, Snapshot},
    },
};

/// Run that is compared.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name for people: that of its file.
    pub name: String,
    /// Its results.
    pub snapshot: Snapshot,
}

/// Longest window by the shortest from which on a difference is noted.
const MOST_RATIO: f64 = 1.25;

/// A property of a run, with its name.
type Property = (&'static str, fn(&Snapshot) -> String);

/// Properties that a change may come from, instead of from what was changed on purpose.
const PROPERTIES: [Property; 6] = [
    ("machine", |run| format!("{}, {} CPUs", known(&run.host.machine), run.host.cpus)),
    ("kernel", |run| known(&run.host.kernel)),
    ("version of nntrace-bpf", |run| run.tool.version.clone()),
    ("version of the snapshot", |run| run.version.to_string()),
    ("kind of run", |run| run.source.kind.to_string()),
    ("source of marks", |run| {
        let marks = serde_json::to_value(run.source.marks).ok();
        marks.and_then(|marks| marks.as_str().map(str::to_owned)).unwrap_or_default()
    }),
];

fn known(text: &str) -> String {
    if text.is_empty() { "not known".into() } else { text.to_owned() }
}

/// Returns a line for each property that is not the same in all runs.
pub(super) fn differences(before: &[Run], after: &[Run]) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, property) in PROPERTIES {
        let of = |runs: &[Run]| runs.iter().map(|run| property(&run.snapshot)).collect::<BTreeSet<_>>();
        let (old, new) = (of(before), of(after));
        if old != new || old.len() > 1 {
            let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
            lines.push(format!("the {name} differs: {} before, {} after", list(old), list(new)));
        }
    }
    let windows = before.iter().chain(after).map(|run| run.snapshot.window.length_ns());
    let (least, most) =
        windows.fold((u64::MAX, 0), |(least, most), window| (least.min(window), most.max(window)));
    if most as f64 > least as f64 * MOST_RATIO {
        let (least, most) = (number_format::duration_ns(least), number_format::duration_ns(most));
        lines.push(format!("the windows differ in length: {least} to {most}"));
    }
    lines
}

/// Returns a line about runs that lost something.
pub(super) fn losses(before: &[Run], after: &[Run]) -> Option<String> {
    let lossy = |run: &&Run| !run.snapshot.loss.incomplete.is_empty();
    let names: Vec<&str> = before.iter().chain(after).filter(lossy).map(|run| run.name.as_str()).collect();
    let (first, rest) = names.split_first()?;
    let others = match rest.len() {
        0 => String::new(),
        more => format!(" and {}", counted(more as u64, "other run")),
    };
    Some(format!("records were lost in {first}{others}: figures with ~ lack them, and have no verdict"))
}

/// Checks that a property is the same in all runs; else names two that differ.
pub(super) fn same(
    runs: &[&Snapshot],
    names: &[&str],
    what: &str,
    property: impl Fn(&Snapshot) -> String,
) -> Result<(), String> {
    let mut found = runs.iter().map(|run| property(run)).zip(names);
    let Some((first, name)) = found.next() else { return Ok(()) };
    match found.find(|(other, _)| *other != first) {
        None => Ok(()),
        Some((other, other_name)) => {
            Err(format!("the {what} differ: {first} in {name}, {other} in {other_name}"))
        }
    }
}

/// Returns the CPUs of a run, by cluster.
pub(super) fn cpus(run: &Snapshot) -> String {
    let cpus: Vec<u32> = run.cpus.iter().map(|row| row.cpu).collect();
    if cpus.is_empty() {
        return "none".into();
    }
    let cluster = |row: &ClusterRow| format!("{} {}", row.cluster, cpu_list::format(&row.cpus));
    let clusters: Vec<String> = run.clusters.iter().map(cluster).collect();
    format!("{} ({})", cpu_list::format(&cpus), clusters.join(", "))
}

/// Returns the unit of work that all runs have: executions of the application, or else time.
pub(super) fn per(runs: &[&Snapshot]) -> Per {
    let is_counted = |run: &&Snapshot| executions(run) > 0 && !run.loss.makes_incomplete("reports");
    if runs.iter().all(is_counted) { Per::Execution } else { Per::Second }
}

/// Returns the work of a run; `None` where it has none.
pub(super) fn unit(run: &Snapshot, per: Per) -> Option<f64> {
    let work = match per {
        Per::Execution => executions(run) as f64,
        Per::Second => run.window.length_ns() as f64 / 1e9,
        Per::Run => 1.0,
    };
    (work > 0.0).then_some(work)
}

fn executions(run: &Snapshot) -> u64 {
    run.reports.iter().map(|report| report.executions).map(|all| all.po + all.pwu + all.pbm).sum()
}
