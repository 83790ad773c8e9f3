//! The subcommands: one file each, from its arguments to an exit status.

pub mod energy_model;
pub mod engines;
pub mod info;
pub mod live;
pub mod manual;
pub mod print;
pub mod record;
pub mod replay;
pub mod report;
pub mod topology;
