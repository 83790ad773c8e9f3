//! The contract's tables in JSON: an object of layers, each an object of phases.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::layer::{Layer, Phase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::model::layer_phase_times::{TableRow, TimesByLayer};

/// Code of the Total row.
const TOTAL: &str = "LT";

fn code(row: TableRow) -> &'static str {
    match row {
        TableRow::Layer(layer) => layer.code(),
        TableRow::Total => TOTAL,
    }
}

fn rows() -> impl Iterator<Item = TableRow> {
    Layer::ALL.into_iter().map(TableRow::Layer).chain([TableRow::Total])
}

impl Serialize for TimesByLayer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In the order of the letters, like every object whose keys are data.
        let mut table: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
        for (row, phase, ns) in self.iter() {
            table.entry(code(row)).or_default().insert(phase.code(), ns);
        }
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TimesByLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<String, BTreeMap<Phase, i64>>::deserialize(deserializer)?;
        let mut times = Vec::new();
        for (name, phases) in table {
            let row = rows().find(|row| code(*row) == name);
            let row = row.ok_or_else(|| D::Error::custom(format_args!("`{name}` is no layer of a table")))?;
            times.extend(phases.into_iter().map(|(phase, ns)| (row, phase, ns)));
        }
        Ok(times.into_iter().collect())
    }
}

impl JsonSchema for TimesByLayer {
    fn schema_name() -> Cow<'static, str> {
        "TimesByLayer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rows: Vec<_> = rows().map(code).collect();
        json_schema!({
            "description": "Time by layer and phase, ns; what is 0 is left out. `LT` is the largest total of all layers. \
                            Self times may be negative.",
            "type": "object",
            "propertyNames": {"enum": rows},
            "additionalProperties": {
                "type": "object",
                "propertyNames": generator.subschema_for::<Phase>(),
                "additionalProperties": i64::json_schema(generator),
            },
        })
    }
}
