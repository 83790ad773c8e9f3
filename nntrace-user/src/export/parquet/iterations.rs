//! The table of iterations.

use std::path::Path;

use super::{
    ExportError, Label,
    schema::ITERATIONS,
    table::{Table, Value},
};
use crate::model::Findings;

/// Writes the table, in the order in which iterations began.
pub(super) fn write(folder: &Path, label: &Label, findings: &Findings<'_>) -> Result<(), ExportError> {
    let names = &findings.marks.names;
    let iterations = &findings.marks.causality.iterations;
    let mut table = Table::create(folder, &ITERATIONS, label)?;
    for iteration in iterations.kept() {
        let (pid, name, number) = iteration.key;
        let parent = iteration.parent.and_then(|parent| iterations.key(parent));
        let (begin, end) = iteration.wall.unzip();
        let (name, parent_name) = (names.text(name), parent.map(|(_, name, _)| names.text(name)));
        table.push(&[
            pid.into(),
            Value::Text(&name),
            number.into(),
            parent_name.as_deref().into(),
            parent.map(|(.., number)| number).into(),
            begin.into(),
            end.into(),
            iteration.total.count.into(),
            iteration.open.into(),
            iteration.total.own.into(),
            iteration.total.exclusive.into(),
            iteration.wall_ns().into(),
            iteration.missing.into(),
        ])?;
    }
    table.finish().map(drop)
}
