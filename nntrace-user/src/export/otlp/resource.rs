//! Attributes of what results are of.

use super::messages::{self, AnyValue, KeyValue, Scope, Value};

/// Origin of results: a program on a board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Name of the program.
    pub service: String,
    /// Name of the board; empty where it is not known.
    pub host: String,
    /// Attributes that were asked for besides.
    pub others: Vec<(String, String)>,
}

impl Resource {
    /// Returns the message, with further attributes.
    pub(super) fn message(&self, more: impl IntoIterator<Item = KeyValue>) -> messages::Resource {
        let mut attributes = vec![text("service.name", &self.service)];
        attributes.extend(Some(text("host.name", &self.host)).filter(|_| !self.host.is_empty()));
        attributes.extend(self.others.iter().map(|(key, value)| text(key, value)));
        attributes.extend(more);
        messages::Resource { attributes }
    }
}

/// Returns this program, as the maker of the results.
pub(super) fn scope() -> Scope {
    Scope { name: "nntrace-bpf".into(), version: env!("CARGO_PKG_VERSION").into() }
}

/// Returns an attribute with a text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::Text(value.to_owned()))
}

/// Returns an attribute with a number. One that is too large is a text.
pub(super) fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Integer))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
