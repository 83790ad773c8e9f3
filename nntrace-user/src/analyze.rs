//! Comparison of several results. Pure: snapshots in, findings out.

pub mod diff;
