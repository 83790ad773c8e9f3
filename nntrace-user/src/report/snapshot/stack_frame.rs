//! Frames of stacks in JSON: their text.

use std::borrow::Cow;

use nntrace_common::layer::{Layer, Phase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::model::stacks::StackFrame;

impl Serialize for StackFrame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StackFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format_args!("`{text}`: {error}")))
    }
}

impl JsonSchema for StackFrame {
    fn schema_name() -> Cow<'static, str> {
        "StackFrame".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (layers, phases) = (Layer::ALL.map(Layer::code).join("|"), Phase::ALL.map(Phase::code).join("|"));
        json_schema!({
            "description": "A frame of a stack: its layer and phase, `LR_PE`, or `?` where they are not known; behind \
                            them, `!` says that it is subtracted from the frame around it, `+` that it is work for an \
                            execution on another thread, in no total of a layer, `*` that it is a call that starts an \
                            asynchronous execution or waits for it, in no total of a layer.",
            "type": "string",
            "pattern": format!("^(({layers})_({phases})|\\?)[!+*]?$"),
        })
    }
}
