//! Common parts of the end-to-end tests: starting programs that cannot outlive their test, running the profiler, and
//! examining its snapshots.
//!
//! A live test begins with [`live::enter`], or with [`live::enter_shared`] if others may run beside it. It needs root and a
//! kernel with BPF: without them it prints a message and passes, unless `NNTRACE_LIVE=required` is set, which makes it fail.
//! While a test that began with `enter` runs, no other live test does, in any number of processes.

pub mod binaries;
pub mod bpf;
pub mod browser;
pub mod c;
pub mod child;
pub mod cpus;
pub mod disassembly;
pub mod duckdb;
pub mod engine_ends;
pub mod engines;
pub mod express;
pub mod figures;
pub mod fixtures;
pub mod hooked;
pub mod http;
pub mod itt;
pub mod kernel_trace;
pub mod lane;
pub mod late_wake_ups;
pub mod live;
pub mod marks;
pub mod native;
pub mod otlp;
pub mod perfetto;
pub mod picture;
pub mod power;
pub mod pprof;
pub mod profiler;
pub mod prometheus;
pub mod recorded;
pub mod recording;
pub mod results;
pub mod rows;
pub mod snapshot;
pub mod surroundings;
pub mod tmux;
pub mod trace;
pub mod tracefs;
pub mod truth;
pub mod vtables;
pub mod wait;
pub mod wheels;
pub mod why;
