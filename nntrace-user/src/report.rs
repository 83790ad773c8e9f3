//! Results for people and programs: the snapshot, and its views as text.

pub(crate) mod build;
pub mod call_list;
pub(crate) mod cpu_or_cluster;
pub(crate) mod device_usage;
pub mod dispatch_overhead;
pub mod energy_model;
mod hand_overs;
pub(crate) mod headline;
pub(crate) mod incomplete_figures;
pub mod nnapi;
pub mod number_format;
pub mod power;
pub mod probe_share;
pub mod rails;
pub mod section_lines;
pub mod section_list;
pub mod section_statistics;
pub mod snapshot;
pub mod tables;
pub mod terminal_text;
pub mod timeline;
pub(crate) mod top_functions;
pub(crate) mod xml;

#[cfg(test)]
mod tests;
