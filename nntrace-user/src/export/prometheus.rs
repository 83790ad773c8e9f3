//! Metrics in the formats of Prometheus: for a file, or for a server that asks.

mod format;
mod messages;
mod protobuf;
mod text;

pub use format::Format;

use crate::export::metrics::Metrics;

/// Writes metrics in a format.
#[must_use]
pub fn encode(metrics: &Metrics, format: Format) -> Vec<u8> {
    match format {
        Format::Text => text::text(metrics.families()).into_bytes(),
        Format::OpenMetrics => text::open_metrics(metrics.families()).into_bytes(),
        Format::Protobuf => protobuf::delimited(metrics.families()),
    }
}
