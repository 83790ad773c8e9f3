//! The subcommands: one file each, from its arguments to an exit status.

pub mod bench;
pub mod calls;
pub mod diff;
pub mod doctor;
pub mod emit;
pub mod energy_model;
pub mod engines;
pub mod explain;
pub mod export;
mod file_run;
mod fresh_run;
mod graph_question;
pub mod info;
pub mod live;
pub mod manual;
pub mod pack;
pub mod placement;
pub mod playback;
pub mod print;
pub mod record;
pub mod replay;
pub mod report;
pub mod topology;
pub mod unpack;
pub mod what_if;
pub mod why;
mod why_line;
