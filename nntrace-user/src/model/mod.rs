//! What the records mean. Pure: no input or output, no clock, no terminal; knows `nntrace-common` only.

pub mod app_slots;
pub mod capped;
pub mod causality;
pub mod clusters;
pub mod cpu_list;
pub mod energy;
pub mod executions;
pub mod facts;
pub mod few;
pub mod findings;
pub mod histogram;
pub mod lane;
pub mod limits;
pub mod marks;
pub mod names;
pub mod power;
pub mod reports;
pub mod scheduling;
pub mod sites;
pub mod sleeps;
pub mod stacks;
pub mod steps;
pub mod timeline;
pub mod times;
pub mod topology;
pub mod tracks;
pub mod verify;

pub use clusters::Clusters;
pub use findings::Findings;
pub use marks::Marks;
pub use scheduling::Scheduling;
pub use topology::Topology;
