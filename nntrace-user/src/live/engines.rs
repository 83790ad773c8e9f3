//! Engines as they are: which functions of a library that runs neural networks begin what, found in its file alone.
//!
//! ```text
//! engine_map, catalog: what an engine is known by, what to probe ──────────┐
//! image: bytes, symbols, pointers of a file ─┬─► rtti: virtual functions ──┼─► recognition, resolve ─► probes
//!                                            ├─► api_table: tables ────────┤
//!                                            ├─► bounds: ends of functions ┤
//!                                            └─► code: entries and returns ┘
//! ```
//!
//! The files may be for either architecture, whatever the host is. They belong to others, and may be damaged or
//! malicious: every number in them is checked, and what is built from them is bounded by their size. No code of them
//! runs here.

mod api_table;
pub(super) mod bounds;
pub(super) mod catalog;
pub(super) mod code;
pub(super) mod demangled_names;
mod engine_listing;
mod engine_map;
pub(super) mod examination;
mod examined_file;
pub(super) mod image;
pub(super) mod probe;
mod proposal;
mod recognition;
mod references;
pub(super) mod resolve;
mod rtti;
mod symbol_search;

pub use engine_listing::{EngineMaps, FailedFile, FoundEngine, KnownEngine, PlannedProbe, Survey};
pub(in crate::live) use proposal::CandidateSearch;
pub use proposal::Proposal;

#[cfg(test)]
mod test_files;
#[cfg(test)]
mod tests;
