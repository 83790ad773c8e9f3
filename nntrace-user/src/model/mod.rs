//! What the records mean. Pure: no input or output, no clock, no terminal; knows `nntrace-common` only.

pub mod clusters;
pub mod power;
pub mod spans;
pub mod stacks;
pub mod topology;

pub use clusters::Clusters;
pub use spans::Spans;
pub use stacks::StackTotals;
pub use topology::Topology;
