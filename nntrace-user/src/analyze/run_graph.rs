//! The graph of a run: points in the time of threads, the work between them, and what waits for what.

pub(in crate::analyze) mod build;
pub(in crate::analyze) mod collect;
pub(in crate::analyze) mod component;
mod contention;
pub(in crate::analyze) mod frequencies;
pub(in crate::analyze) mod graph;
mod queues;
mod refusal;
mod threads;
mod waits;

pub use collect::Collector;
pub use refusal::Refusal;
