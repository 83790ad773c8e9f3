//! Live measuring: from the kernel to records and exact totals.
//!
//! ```text
//! target: processes, files, mark functions ─► probes (nops): where to probe ─┐
//! sysfs, tracefs: CPUs, trace events ─► power, initial: begin of the window ─┤
//!                                                                            ▼
//!                                               kernel: programs ─► maps ─┬─► rings (decode, merge): records in order
//!                                                                         └─► exact totals, by CPU and by path
//! session: all of it for one run, and its results; verify: the kernel's own counts beside them
//! ```
//!
//! [`kernel`] does not depend on probes, records and sessions. Only this module uses aya: programs, maps and links.

pub mod clock;
mod decode;
pub mod energy_model;
pub mod evidence;
mod initial;
mod interfaces;
pub mod kernel;
mod merge;
pub mod nops;
mod power;
mod privilege;
pub mod probes;
pub mod rings;
pub mod session;
pub mod sysfs;
pub mod target;
mod threads;
mod trace_marker;
pub mod tracefs;
mod verify;
