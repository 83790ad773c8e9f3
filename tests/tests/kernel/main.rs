//! The profiler on the running kernel: programs, targets and windows. Those named in `xtask/src/vm/programs.rs` also run in
//! emulated machines.

mod bad_targets;
mod clean_exit;
mod counters;
mod driver_calls;
mod evidence;
mod flood;
mod hotplug;
mod idle_against_ftrace;
mod initial_state;
mod kernel_log;
mod launched_command;
mod loss;
mod odd_marks;
mod pid_namespaces;
mod power_programs;
mod replay_and_kernel;
mod scheduling;
mod table_sizes;
mod targets;
mod verify;
mod window;
mod workload_truth;
