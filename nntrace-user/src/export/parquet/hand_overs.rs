//! The table of hand-overs.

use std::path::Path;

use nntrace_common::{attributes::Handle, layer::Tag};

use super::{
    ExportError, Label,
    schema::HAND_OVERS,
    table::{Table, Value},
};
use crate::model::{
    Findings,
    causality::hand_overs::{HandOver, Part},
};

/// Writes the table, in the order of the first anchor that is known of each.
pub(super) fn write(folder: &Path, label: &Label, findings: &Findings<'_>) -> Result<(), ExportError> {
    let (names, causality) = (&findings.marks.names, &findings.marks.causality);
    let mut table = Table::create(folder, &HAND_OVERS, label)?;
    let results = causality.hand_overs.as_ref().map(|hand_overs| hand_overs.results());
    for hand_over in results.iter().flat_map(|results| &results.list) {
        let HandOver { dispatch, receive, .. } = *hand_over;
        let handle = hand_over.handle.map(|handle| match handle {
            Handle::OfProcess(handle) => (handle, "process"),
            Handle::OfSystem(handle) => (handle, "system"),
        });
        let iteration = hand_over.iteration.and_then(|iteration| causality.iterations.key(iteration));
        let iteration_name = iteration.map(|(_, name, _)| names.text(name));
        let function = hand_over.function.zip(results.as_ref());
        let function = function.map(|(function, results)| results.function_name(function, names));
        let layer = |tag: Option<Tag>| tag.map(|tag| tag.layer().code());
        table.push(&[
            Value::Text(hand_over.source.name()),
            handle.map(|(handle, _)| handle).into(),
            handle.map(|(_, scope)| scope).into(),
            dispatch.map(|at| at.time).into(),
            dispatch.map(|at| at.pid).into(),
            dispatch.map(|at| at.tid).into(),
            receive.map(|at| at.time).into(),
            receive.map(|at| at.pid).into(),
            receive.map(|at| at.tid).into(),
            hand_over.part(Part::Propagation).into(),
            hand_over.received_first.map(|at| at.time).into(),
            hand_over.start.map(|at| at.time).into(),
            hand_over.end.map(|at| at.time).into(),
            hand_over.finish.into(),
            layer(hand_over.from).into(),
            layer(hand_over.to).into(),
            hand_over.to.map(|tag| tag.phase().code()).into(),
            function.as_deref().into(),
            iteration.map(|(pid, ..)| pid).into(),
            iteration_name.as_deref().into(),
            iteration.map(|(.., number)| number).into(),
        ])?;
    }
    table.finish().map(drop)
}
