//! Results in the formats of other programs.

pub mod chrome;
pub mod dot;
pub mod folded;
pub mod html;
pub mod metrics;
pub mod otlp;
pub mod parquet;
pub mod perfetto;
pub mod pprof;
pub mod prometheus;
pub mod swimlane;
#[cfg(test)]
mod tests;
mod thread_name;

pub use thread_name::ThreadName;
