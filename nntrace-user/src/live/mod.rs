//! Live measuring: from the kernel to records and exact totals.
//!
//! ```text
//! target: processes, mark functions ─► probes (nops) ─► kernel (programs, maps) ─► rings ─► records
//! sysfs: topology, frequencies                                         └─► tables: exact totals
//!                                  session: all of it, for one run
//! ```
//!
//! The only place that knows BPF is `kernel`, with `power`, `initial`, `evidence`, `sched`, `writes` and `rings`.

pub mod clock;
mod decode;
pub mod energy_model;
pub mod evidence;
mod initial;
pub mod interfaces;
pub mod kernel;
mod merge;
pub mod nops;
mod power;
mod privilege;
pub mod probes;
pub mod rings;
pub mod sched;
pub mod session;
pub mod sysfs;
pub mod target;
pub mod tracefs;
mod verify;
mod writes;
