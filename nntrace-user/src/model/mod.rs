//! What the records mean. Pure: no input or output, no clock, no terminal; knows `nntrace-common` only.

pub(crate) mod app_phases;
mod app_slots;
pub(crate) mod capped;
pub mod causality;
pub mod clusters;
pub mod cpu_list;
pub mod energy;
pub mod executions;
pub mod facts;
pub mod findings;
pub mod histogram;
pub(crate) mod idle_stays;
pub mod limits;
pub(crate) mod marks;
pub(crate) mod names;
pub mod power;
pub(crate) mod report_sums;
pub(crate) mod reports;
pub(crate) mod scheduling;
mod sites;
pub mod small_map;
pub(crate) mod stacks;
pub mod timeline;
pub mod timelines;
pub(crate) mod times;
pub mod topology;
mod tracks;
pub(crate) mod verify;

pub use clusters::Clusters;
pub use findings::Findings;
pub use marks::Marks;
pub(crate) use scheduling::Scheduling;
pub use topology::Topology;
