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

pub mod calls;
pub mod clock;
mod decode;
mod demangling;
mod device_clocks;
mod device_usage;
pub mod doctor;
pub mod driver_calls;
pub mod energy_model;
pub mod engine_probes;
pub mod engines;
pub mod examinations;
pub mod express;
mod frequency_limits;
pub mod hooks;
pub mod host_readers;
mod initial_state;
pub mod itt;
pub mod kernel;
mod kernel_comparison;
mod known_hidl_calls;
mod merge;
mod opened_files;
pub mod other_power_events;
pub mod perf_events;
mod power;
mod privilege;
mod probe_trials;
pub mod probes;
pub mod rails;
pub mod ring_drain;
pub mod session;
pub mod stop_guard;
pub mod sysfs;
pub mod target;
mod target_library;
mod threads;
mod trace_marker;
pub mod tracefs;
