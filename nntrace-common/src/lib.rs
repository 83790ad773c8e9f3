//! Definitions shared by the kernel programs, the replay and the tests of nntrace-bpf.
#![cfg_attr(not(any(test, feature = "oracle", feature = "std")), no_std)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod app_events;
pub mod attributes;
pub mod begin;
pub mod bounds;
pub mod counts;
pub mod diagnostic;
#[cfg(feature = "emit")]
pub mod emit;
mod enumeration;
pub mod evidence;
pub mod interface;
pub mod layer;
pub mod log_limit;
pub mod mark;
pub mod nesting;
pub mod power;
pub mod record;
pub mod run_queue;
pub mod sched;
pub mod stack;
pub mod time_count;
pub mod track;
pub mod window;
