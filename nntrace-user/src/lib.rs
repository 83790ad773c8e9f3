//! The library behind `nntrace-bpf`.
pub mod live;
pub mod model;
pub mod report;
pub mod tui;
