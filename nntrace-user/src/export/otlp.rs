//! Metrics and spans for receivers of OpenTelemetry: requests of OTLP, to be sent by HTTP.
//!
//! Messages are structures with the fields that are written, as those of Perfetto and pprof: the crate with the whole schema
//! brings an SDK with it. Tests read them by that crate.

mod ids;
mod links;
mod messages;
mod metrics;
mod resource;
mod spans;

use prost::Message as _;

use self::messages::Answer;
pub use self::{
    metrics::metrics,
    resource::Resource,
    spans::{SpanCounts, Spans},
};

/// Request to a receiver.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path at the receiver, such as `/v1/traces`.
    pub path: &'static str,
    /// Content.
    pub body: Vec<u8>,
    /// Number of spans, or of points of metrics.
    pub items: u64,
}

/// Refusal of some items of a request, by a receiver that took the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Number of items.
    pub items: u64,
    /// Reason, in the receiver's words.
    pub reason: String,
}

/// Reads the body of an answer; `None` where the receiver took everything, or does not say.
#[must_use]
pub fn refusal(body: &[u8]) -> Option<Refusal> {
    let refused = Answer::decode(body).ok()?.partial_success?;
    let items = u64::try_from(refused.rejected).ok().filter(|items| *items > 0)?;
    Some(Refusal { items, reason: refused.error_message })
}
