//! Snapshots as the profiler makes them: held against the committed schema, whoever reads them.

use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use jsonschema::Validator;
use nntrace_user::{model::Findings, report::snapshot::Snapshot};
use serde_json::Value;

/// The JSON Schema of snapshots, as it is committed.
const SCHEMA: &str = include_str!("../../nntrace-user/docs/snapshot.schema.json");

/// Reads a snapshot from JSON.
///
/// # Errors
/// When it is none, or the schema does not allow something in it.
pub fn read(json: &[u8]) -> Result<Snapshot> {
    validate(&serde_json::from_slice(json).context("no whole snapshot was written")?)?;
    Ok(serde_json::from_slice(json)?)
}

/// The snapshot of findings.
///
/// # Errors
/// When the schema does not allow something in it.
pub fn of(findings: &Findings<'_>) -> Result<Snapshot> {
    let snapshot = Snapshot::of(findings);
    validate(&serde_json::to_value(&snapshot)?)?;
    Ok(snapshot)
}

fn validate(snapshot: &Value) -> Result<()> {
    let errors = validator()?.iter_errors(snapshot);
    let errors: Vec<String> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    ensure!(errors.is_empty(), "the schema does not allow this snapshot:\n{}", errors.join("\n"));
    Ok(())
}

fn validator() -> Result<&'static Validator> {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    if let Some(validator) = VALIDATOR.get() {
        return Ok(validator);
    }
    let validator = jsonschema::draft202012::new(&serde_json::from_str(SCHEMA)?)?;
    Ok(VALIDATOR.get_or_init(|| validator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn the_schema_refuses_what_no_snapshot_has() -> Result<()> {
        let text = [trace::line(1_000, 1, 1, "B|1|[NN_LR_PE]f"), trace::line(2_000, 1, 1, "E|1")].join("\n");
        let good = serde_json::to_value(trace::replay(text)?)?;
        validate(&good)?;
        for (place, wrong) in [
            ("/schema", "nntrace"),
            ("/source/kind", "dead"),
            ("/phases/0/layer", "LX"),
            ("/phases/0/role", "runtime"),
            ("/phases/0/count", "1"),
            ("/stacks/0/path/0", "LR_PE?"),
            ("/reports/0/total_ns/LR/PE", "1"),
            ("/window", ""),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(place).with_context(|| place.to_owned())? = wrong.into();
            let error = validate(&bad).err().with_context(|| format!("{wrong:?} at {place}"))?.to_string();
            ensure!(error.contains(&format!("{place}: ")), "{error}");
        }
        let mut bad = good;
        bad["reports"][0]["total_ns"]["LX"] = Value::Object(serde_json::Map::new());
        ensure!(validate(&bad).is_err(), "an unknown layer");
        Ok(())
    }
}
