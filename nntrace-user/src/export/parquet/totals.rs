//! The table of totals: of layers and phases, of stacks, of functions.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use nntrace_common::record::Total;

use super::{
    ExportError, Label,
    schema::TOTALS,
    table::{Table, Value},
};
use crate::{
    model::{Findings, stacks::StackFrame},
    report::snapshot::{PhaseRow, ProcessRole, Snapshot},
};

/// Writes the table: layers and phases, then stacks, then functions, each by process.
pub(super) fn write(
    folder: &Path,
    label: &Label,
    findings: &Findings<'_>,
    snapshot: &Snapshot,
) -> Result<(), ExportError> {
    let processes = Processes::of(snapshot);
    let mut table = Table::create(folder, &TOTALS, label)?;
    for row in &snapshot.phases {
        let [process, role] = processes.values(row.pid);
        table.push(&[
            "phase".into(),
            row.pid.into(),
            process,
            role,
            row.layer.code().into(),
            row.phase.code().into(),
            Value::Null,
            Value::Null,
            Value::Null,
            row.count.into(),
            row.total_ns.into(),
            row.exclusive_ns.into(),
        ])?;
    }
    for (pid, stack, path, total) in stacks(findings) {
        let [process, role] = processes.values(pid);
        let tag = stack.last().and_then(|frame| frame.tag);
        let text = text(&stack);
        table.push(&[
            "stack".into(),
            pid.into(),
            process,
            role,
            tag.map(|tag| tag.layer().code()).into(),
            tag.map(|tag| tag.phase().code()).into(),
            Value::Null,
            path.into(),
            Value::Text(&text),
            total.count.into(),
            total.own.into(),
            total.exclusive.into(),
        ])?;
    }
    for row in &snapshot.functions {
        let [process, role] = processes.values(row.pid);
        table.push(&[
            "function".into(),
            row.pid.into(),
            process,
            role,
            row.layer.code().into(),
            row.phase.code().into(),
            Value::Text(&row.name),
            Value::Null,
            Value::Null,
            row.count.into(),
            row.total_ns.into(),
            row.exclusive_ns.into(),
        ])?;
    }
    table.finish().map(drop)
}

/// Names and roles of processes.
struct Processes<'a>(BTreeMap<u32, &'a PhaseRow>);

impl<'a> Processes<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        Self(snapshot.phases.iter().map(|row| (row.pid, row)).collect())
    }

    fn values(&self, pid: u32) -> [Value<'a>; 2] {
        let row = self.0.get(&pid);
        let role = row.map(|row| match row.role {
            ProcessRole::Application => "application",
            ProcessRole::Driver => "driver",
        });
        [row.map(|row| row.comm.as_str()).filter(|name| !name.is_empty()).into(), role.into()]
    }
}

/// Returns the totals of stacks, by process and stack.
fn stacks(findings: &Findings<'_>) -> Vec<(u32, Vec<StackFrame>, u64, Total)> {
    let paths = &findings.marks.paths;
    let mut sums: BTreeMap<(u32, u64), Total> = BTreeMap::new();
    for (key, total) in &findings.sums.totals {
        // Of what adds to no total, a replay has the own time too.
        let own = if paths.adds_to_stack(key.path) { total.own } else { 0 };
        sums.entry((key.tgid, key.path)).or_default().add(&Total { own, ..*total });
    }
    let rows = sums.into_iter().map(|((pid, path), total)| (pid, paths.frames(path), path, total));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
    rows
}

/// Returns a stack as text, from the outermost frame in.
fn text(stack: &[StackFrame]) -> String {
    let mut text = String::new();
    for (number, frame) in stack.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{frame}", if number == 0 { "" } else { ";" });
    }
    text
}
