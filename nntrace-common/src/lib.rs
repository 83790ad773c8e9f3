//! Definitions shared by the kernel programs, the replay and the tests of nntrace-bpf.
#![cfg_attr(not(any(test, feature = "oracle", feature = "std")), no_std)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod app_events;
pub mod async_runs;
pub mod attributes;
pub mod calls;
pub mod creds;
pub mod diagnostic;
pub mod driver_calls;
#[cfg(feature = "emit")]
pub mod emit;
pub mod engine;
pub mod engine_frames;
pub mod event_counts;
pub mod express;
pub mod frequency_limits;
pub mod hidl_calls;
pub mod layer;
pub mod log_limit;
#[cfg(feature = "user")]
mod map_values;
pub mod mark;
mod named_enum;
pub mod nested_functions;
pub mod opened_files;
pub mod other_power_events;
pub mod perf_counters;
pub mod pid_namespace;
pub mod power;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod prefetch;
pub mod record;
pub mod rivals;
pub mod run_queue;
pub mod sched;
pub mod section_begin;
pub mod stack;
pub mod stamp;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod ticks;
pub mod time_count;
pub mod tokens;
pub mod track;
pub mod verifier_bounds;
pub mod window;
