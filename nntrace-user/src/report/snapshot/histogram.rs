//! Distributions of times, and their form in JSON.

use std::{borrow::Cow, fmt, ops::Deref};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer as V2Deserializer, Serializer as _, V2Serializer},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// A distribution of times, ns.
#[derive(Clone, PartialEq)]
pub struct TimeHistogram(Histogram<u32>);

impl From<Histogram<u32>> for TimeHistogram {
    fn from(histogram: Histogram<u32>) -> Self {
        Self(histogram)
    }
}

impl Deref for TimeHistogram {
    type Target = Histogram<u32>;

    fn deref(&self) -> &Histogram<u32> {
        &self.0
    }
}

/// Its ends: the thousands of counts between tell nobody anything.
impl fmt::Debug for TimeHistogram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} times from {} ns to {} ns", self.len(), self.min(), self.max())
    }
}

impl Serialize for TimeHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for TimeHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn decode(text: &str) -> Result<TimeHistogram, String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("a histogram is no base64: {error}"))?;
    let histogram = V2Deserializer::new().deserialize(&mut bytes.as_slice());
    histogram.map(TimeHistogram).map_err(|error| format!("a histogram is no HdrHistogram V2: {error}"))
}

impl JsonSchema for TimeHistogram {
    fn schema_name() -> Cow<'static, str> {
        "TimeHistogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A distribution of times, ns: an HdrHistogram in its encoding V2, not compressed, as base64.",
            "type": "string",
            "contentEncoding": "base64",
        })
    }
}

/// A histogram that may be missing: the empty text says so.
pub(super) mod or_empty {
    use super::{Deserialize, Deserializer, Serialize, Serializer, TimeHistogram, de, decode};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        histogram: &Option<TimeHistogram>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match histogram {
            Some(histogram) => histogram.serialize(serializer),
            None => serializer.serialize_str(""),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<TimeHistogram>, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "" => Ok(None),
            text => decode(text).map(Some).map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut histogram = Histogram::new(3).unwrap();
        for (ns, count) in [(0, 2), (900, 3), (12_345, 40), (1_000_000_000, 5)] {
            histogram.record_n(ns, count).unwrap();
        }
        let histogram = TimeHistogram(histogram);
        let json = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<TimeHistogram>(&json).unwrap(), histogram);
    }

    #[test]
    fn damage_is_told() {
        for (text, error) in [("not base64!", "no base64: "), ("aGVsbG8=", "no HdrHistogram V2: ")] {
            let told = serde_json::from_value::<TimeHistogram>(text.into()).unwrap_err().to_string();
            assert!(told.contains(error), "{told}");
        }
    }
}
