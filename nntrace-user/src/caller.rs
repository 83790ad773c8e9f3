//! The user who asked for this run, and what is done with no more rights than his.
//!
//! Under sudo it is the user who called sudo: files are opened, created and removed as he may, whatever else the run needs
//! root for. A program that he has profiled cannot make root write or read a file by links that it puts in our way.
//!
//! Where the program has capabilities of its own, as after `setcap`, he traces with it only what he may trace without it.

mod capabilities;
mod file_rights;
mod run_as;

pub use capabilities::drop_all;
pub(crate) use capabilities::keep_right_to_signal;
pub use file_rights::{
    FileRights, as_whom, drop_those_of_program, is_program_privileged, keep_file_rights, open,
};
pub(crate) use file_rights::{confined, may_trace};
pub use run_as::RunAs;
pub(crate) use run_as::RunAsError;
