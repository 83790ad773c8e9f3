//! Views of the results.
pub mod human;
pub mod snapshot;
