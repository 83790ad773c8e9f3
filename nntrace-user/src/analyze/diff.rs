//! Comparison of runs: of groups of them by statistics, of two by their power states.
//!
//! Snapshots in, findings out. Every figure has one value a run; a group of runs is its median, a change has an interval by
//! the bootstrap, and what is judged is tested by Mann and Whitney, with Holm's correction for all tests together.

mod comparison;
mod energy;
mod junit;
mod markdown;
mod metric;
mod phases;
pub mod power;
mod rails;
mod residency;
mod result;
mod runs;
mod shown;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod threshold;
mod values;

pub use comparison::Options;
pub use metric::Per;
pub use result::Diff;
pub use runs::Run;
pub use threshold::Threshold;
