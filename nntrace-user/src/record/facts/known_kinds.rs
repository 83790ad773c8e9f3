//! Readers of values whose kinds a later minor version may add to.

use serde::{Deserialize as _, Deserializer};

use super::{Cause, DiagnosticRow};

/// Reads the diagnostics whose kinds are known: later minor versions may have others.
pub(super) fn diagnostics<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Vec<DiagnosticRow>, D::Error> {
    let rows = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row).ok()).collect())
}

/// Reads a cause whose kind is known.
pub(super) fn cause<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Cause>, D::Error> {
    let cause = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(cause).ok())
}
