//! Power states as CSV (RFC 4180): one header line, one row for each state of each unit, ns and kHz. Names are clean: a
//! row is a line.

use std::borrow::Cow;

use serde::Serialize;
use thiserror::Error;

use super::{Group, PowerTable, Row, What};
use crate::report::{cpu_or_cluster::CpuOrCluster, snapshot::Snapshot, terminal_text::clean};

/// A row of the file. What does not apply is empty.
#[derive(Serialize)]
struct Line<'a> {
    table: &'static str,
    scope: &'static str,
    name: Cow<'a, str>,
    cluster: Cow<'a, str>,
    measure: &'static str,
    kind: &'static str,
    state: Option<u32>,
    state_name: Option<Cow<'a, str>>,
    khz: Option<u32>,
    running_cpus: Option<u32>,
    ns: u64,
    window_ns: u64,
    hits: Option<u64>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    whole_stays: Option<u64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    early: Option<u64>,
    late: Option<u64>,
}

/// Why rows could not be written as CSV.
#[derive(Debug, Error)]
#[error("cannot write CSV: {0}")]
pub struct CsvError(String);

/// The tables as CSV.
///
/// # Errors
/// When a row cannot be written.
pub fn csv(snapshot: &Snapshot, tables: &[PowerTable]) -> Result<String, CsvError> {
    let all: Vec<(PowerTable, Vec<Group>)> =
        tables.iter().map(|&table| (table, table.groups(snapshot))).collect();
    let lines = all.iter().flat_map(|(table, groups)| {
        groups.iter().flat_map(|group| group.rows.iter().map(|row| Line::new(*table, group, row)))
    });
    to_csv(lines)
}

/// Rows as CSV, with a header line of their fields.
///
/// # Errors
/// When a row cannot be written.
pub(crate) fn to_csv(rows: impl Iterator<Item = impl Serialize>) -> Result<String, CsvError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(|error| CsvError(error.to_string()))?;
    }
    let error = |error: &dyn std::fmt::Display| CsvError(error.to_string());
    let bytes = writer.into_inner().map_err(|failed| error(&failed))?;
    // What is text and what is a number is only known now.
    let mut guarded = ::csv::Writer::from_writer(Vec::new());
    for row in ::csv::ReaderBuilder::new().has_headers(false).from_reader(&*bytes).records() {
        let row = row.map_err(|failed| error(&failed))?;
        guarded
            .write_record(row.iter().map(|text| cell(text).into_owned()))
            .map_err(|failed| error(&failed))?;
    }
    let bytes = guarded.into_inner().map_err(|failed| error(&failed))?;
    String::from_utf8(bytes).map_err(|failed| error(&failed))
}

/// A text as a cell that no spreadsheet takes for a formula: one that begins as a formula does gets a `'` in front. A number
/// stays as it is.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number = || {
        let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        text.bytes().all(plain) && text.parse::<f64>().is_ok()
    };
    if is_formula && !is_number() { format!("'{text}").into() } else { text.into() }
}

impl<'a> Line<'a> {
    fn new(table: PowerTable, group: &'a Group, row: &'a Row) -> Self {
        let (scope, name) = match &group.unit {
            CpuOrCluster::Cluster(name) => ("cluster", clean(name)),
            CpuOrCluster::Cpu(cpu) => ("cpu", cpu.to_string().into()),
        };
        let (state, state_name) = match &row.what {
            What::IdleState(state, name) => (Some(*state), Some(clean(name))),
            _ => (None, None),
        };
        let idle = row.idle.as_ref();
        Self {
            table: table.name(),
            scope,
            name,
            cluster: clean(&group.cluster),
            measure: group.measure.name(),
            kind: row.what.kind(),
            state,
            state_name,
            khz: match row.what {
                What::At(khz) => khz,
                _ => None,
            },
            running_cpus: match row.what {
                What::AtOnce(cpus) => cpus,
                _ => None,
            },
            ns: row.ns,
            window_ns: group.window_ns,
            hits: row.hits,
            min_ns: idle.and_then(|idle| idle.min_ns),
            max_ns: idle.and_then(|idle| idle.max_ns),
            whole_stays: idle.filter(|_| !group.is_cluster()).map(|idle| idle.whole_stays),
            p50_ns: idle.and_then(|idle| idle.p50_ns),
            p90_ns: idle.and_then(|idle| idle.p90_ns),
            p99_ns: idle.and_then(|idle| idle.p99_ns),
            early: idle.and_then(|idle| idle.early),
            late: idle.and_then(|idle| idle.late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay() {
        for text in ["", "conv", "-5", "+2.5", "-1e-9", "a=b", "'x", "1+1"] {
            assert_eq!(cell(text), text);
        }
        for text in ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "-inf", "\t=1", "-", "=\"a\""] {
            assert_eq!(cell(text), format!("'{text}"));
        }
    }

    #[test]
    fn rows_are_guarded_whatever_is_quoted_in_them() {
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
            change: f64,
        }
        let rows = [Row { name: "=a,\"b\"", change: -0.5 }, Row { name: "conv", change: 2.0 }];
        assert_eq!(to_csv(rows.iter()).unwrap(), "name,change\n\"'=a,\"\"b\"\"\",-0.5\nconv,2.0\n");
    }
}
