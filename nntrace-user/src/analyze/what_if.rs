//! Prediction of a run with other speeds: a graph of what waits for what, and its times again.
//!
//! Marks, hand-overs and context switches become points in the time of threads; what lies between two points of a thread is
//! work, or a wait. Edges lead from what is waited for to who waits. With other speeds the work takes other times, waits
//! follow from the edges, and what waits for nothing that is known keeps its length.

mod answer;
mod cpus;
mod critical_path;
mod frequency;
mod predict;
mod reservations;
mod selection;
#[cfg(test)]
mod tests;
mod text;

pub use answer::{Answer, CpuCount, Options};
pub use frequency::Frequency;
pub use selection::Speed;

pub use super::run_graph::build::Arrivals;
