//! What several results say together. Pure: snapshots in, findings out.

pub mod diff;
