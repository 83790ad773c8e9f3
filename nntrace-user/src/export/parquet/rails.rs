//! The table of measured rails.

use std::path::Path;

use super::{
    ExportError, Label,
    schema::RAILS,
    table::{Table, Value},
};
use crate::model::rails::Rails;

/// Writes the table, by source, chip and name; without a row where none was measured.
pub(super) fn write(folder: &Path, label: &Label, rails: Option<&Rails>) -> Result<(), ExportError> {
    let mut table = Table::create(folder, &RAILS, label)?;
    for rail in rails.into_iter().flat_map(|rails| &rails.rails) {
        table.push(&[
            rail.source.name().into(),
            Value::Text(&rail.chip),
            Value::Text(&rail.name),
            rail.kind.name().into(),
            rail.energy_nj.into(),
            rail.begin_ns.into(),
            rail.end_ns.into(),
            rail.known_ns().into(),
            rail.readings.into(),
            rail.wraps.into(),
            rail.gaps.into(),
            rail.failed.into(),
            rail.failure.as_deref().into(),
        ])?;
    }
    table.finish().map(drop)
}
