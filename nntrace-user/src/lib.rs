//! The library behind `nntrace-bpf`.
pub mod analyze;
pub mod export;
pub mod live;
pub mod model;
pub mod replay;
pub mod report;
pub mod tui;
