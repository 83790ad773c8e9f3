//! Questions to finished runs: whether a change made them worse, where their time went, what other speeds would make of them, how long work takes along a path
//! of functions, where operators ran, which powers of an energy model fit what was measured, and why some executions were slow. Pure.

pub mod diff;
pub mod energy_fit;
pub mod explain;
pub mod path;
pub mod placement;
pub mod run_graph;
pub mod what_if;
pub mod why;
