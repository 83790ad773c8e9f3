//! Live measuring: from the kernel to records and exact totals.
//!
//! ```text
//! target: processes, mark functions ─► probes (nops) ─► kernel (programs, maps) ─► rings ─► records
//! sysfs: topology, frequencies                                         └─► readings: exact totals
//!                                  session: all of it, for one run
//! ```
//!
//! The only place that knows BPF is `kernel` with `functions`, `writes`, `window`, `readings` and `rings`.

mod architecture;
mod btf;
pub mod clock;
mod decode;
mod detaching;
pub mod energy_model;
pub mod evidence;
mod functions;
mod hotplug;
mod initial;
mod interfaces;
pub mod kernel;
mod merge;
pub mod nops;
mod power;
mod privilege;
pub mod probes;
mod readings;
pub mod rings;
mod sched;
pub mod session;
pub mod sysfs;
mod table_sizes;
pub mod target;
pub mod tracefs;
mod verify;
mod window;
mod writes;
