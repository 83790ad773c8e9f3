//! The table of hand-overs.

use std::path::Path;

use nntrace_common::attributes::Handle;

use super::{
    ExportError, Label,
    schema::HAND_OVERS,
    table::{Table, Value},
};
use crate::model::Findings;

/// Writes the table, in the order in which work was taken.
pub(super) fn write(folder: &Path, label: &Label, findings: &Findings<'_>) -> Result<(), ExportError> {
    let (names, causality) = (&findings.marks.names, &findings.marks.causality);
    let iterations = causality.iterations.all();
    let mut table = Table::create(folder, &HAND_OVERS, label)?;
    for hand_over in causality.hand_over_list.all() {
        let (handle, scope) = match hand_over.handle {
            Handle::OfProcess(handle) => (handle, "process"),
            Handle::OfSystem(handle) => (handle, "system"),
        };
        let (sent, received) = (hand_over.sent, hand_over.received);
        let iteration = hand_over.iteration.and_then(|number| iterations.get(number as usize));
        let iteration = iteration.map(|iteration| iteration.key);
        let name = iteration.map(|(_, name, _)| names.text(name));
        table.push(&[
            handle.into(),
            Value::Text(scope),
            sent.time.into(),
            sent.pid.into(),
            sent.tid.into(),
            received.time.into(),
            received.pid.into(),
            received.tid.into(),
            received.time.saturating_sub(sent.time).into(),
            iteration.map(|(pid, ..)| pid).into(),
            name.as_deref().into(),
            iteration.map(|(.., number)| number).into(),
        ])?;
    }
    table.finish().map(drop)
}
