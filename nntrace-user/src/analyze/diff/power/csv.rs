//! Comparison of two runs as CSV.

use std::borrow::Cow;

use serde::Serialize;

use super::{Change, RowChange, changes};
use crate::report::{
    cpu_or_cluster::CpuOrCluster,
    power::{CsvError, PowerTable, What, to_csv},
    snapshot::Snapshot,
    terminal_text::clean,
};

/// Row of the file. Values that do not apply, or do not exist, are empty.
#[derive(Serialize)]
struct Line<'a> {
    table: &'static str,
    scope: &'static str,
    name: Cow<'a, str>,
    cluster: Cow<'a, str>,
    measure: &'static str,
    kind: &'static str,
    state_name: Option<Cow<'a, str>>,
    khz: Option<u32>,
    running_cpus: Option<u32>,
    before_ns: Option<u64>,
    after_ns: Option<u64>,
    before_window_ns: Option<u64>,
    after_window_ns: Option<u64>,
    before_hits: Option<u64>,
    after_hits: Option<u64>,
}

/// Returns the changes in these tables from `before` to `after` as CSV: the times and windows of both, from which
/// shares and rates follow.
///
/// # Errors
/// When a row cannot be written.
pub fn csv(before: &Snapshot, after: &Snapshot, tables: &[PowerTable]) -> Result<String, CsvError> {
    let changes: Vec<(PowerTable, Vec<Change>)> =
        tables.iter().map(|&table| (table, changes(before, after, table))).collect();
    to_csv(changes.iter().flat_map(|(table, changes)| {
        changes.iter().flat_map(|change| change.rows.iter().map(|row| line(*table, change, row)))
    }))
}

fn line<'a>(table: PowerTable, change: &'a Change, row: &'a RowChange) -> Line<'a> {
    let (scope, name) = match &change.unit {
        CpuOrCluster::Cluster(name) => ("cluster", clean(name)),
        CpuOrCluster::Cpu(cpu) => ("cpu", cpu.to_string().into()),
    };
    Line {
        table: table.name(),
        scope,
        name,
        cluster: clean(&change.cluster),
        measure: change.measure.name(),
        kind: row.what.kind(),
        state_name: match &row.what {
            What::IdleState(_, name) => Some(clean(name)),
            _ => None,
        },
        khz: match row.what {
            What::At(khz) => khz,
            _ => None,
        },
        running_cpus: match row.what {
            What::AtOnce(cpus) => cpus,
            _ => None,
        },
        before_ns: row.before.map(|amount| amount.ns),
        after_ns: row.after.map(|amount| amount.ns),
        before_window_ns: change.before_window_ns,
        after_window_ns: change.after_window_ns,
        before_hits: row.before.and_then(|amount| amount.hits),
        after_hits: row.after.and_then(|amount| amount.hits),
    }
}
