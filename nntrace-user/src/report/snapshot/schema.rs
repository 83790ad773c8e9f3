//! The JSON Schema of snapshots, made from their types: descriptions are their doc comments.

use schemars::{
    Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform as _},
};
use serde_json::Value;

use super::Snapshot;

impl Snapshot {
    /// The JSON Schema (draft 2020-12) of what `--json` writes, as text.
    #[must_use]
    pub fn json_schema() -> String {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<Self>();
        RecursiveTransform(unwrap_lines).transform(&mut schema);
        format!("{:#}\n", schema.to_value())
    }
}

/// Joins the lines into which a doc comment was wrapped.
fn unwrap_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let committed = include_str!("../../../docs/snapshot.schema.json");
        assert!(
            committed == Snapshot::json_schema(),
            "the schema of snapshots has changed; see that keys were only added, and write it: \
             cargo run -p nntrace-user -- schema > nntrace-user/docs/snapshot.schema.json"
        );
    }
}
