//! Results in the formats of other programs.

pub mod dot;
pub mod parquet;
