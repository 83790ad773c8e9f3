//! The kernel programs of nntrace-bpf.
//!
//! Each program is thin: it reads its arguments, calls the contract's code in `nntrace-common`, and stores the
//! results in maps (exact totals) and rings (ordered records).
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![allow(clippy::needless_pass_by_value, reason = "the attribute macros hand contexts over by value")]
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "by value, what goes into a map would be copied onto the program's small stack"
)]

mod app_events;
mod async_runs;
mod atomic;
mod call_memory;
mod calls;
mod clock;
mod diagnostics;
mod driver_calls;
mod dynamic_loader;
mod engine_names;
mod engines;
mod event_counts;
mod express;
mod frequency_limits;
mod helpers;
mod hotplug;
mod kernel_memory;
mod log;
mod maps;
mod mark_text;
mod marks;
mod nested_functions;
mod opened_files;
mod other_power_events;
mod perf_counters;
mod power;
mod ring;
mod rivals;
mod run_queues;
mod sched;
mod section_totals;
mod sections;
mod sleepable_programs;
mod system_calls;
mod taking_part;
mod task_ids;
mod task_stack;
mod thread;
mod trace_marker_writes;
mod traced_processes;

/// Never reached: the verifier refuses programs in which it could be.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Some helpers are only for programs under a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// Architecture whose registers the programs on user functions read: user space checks it before it loads them.
///
/// Chosen by the target that aya itself is compiled for, so that the two cannot differ.
#[unsafe(link_section = "nntrace.arch")]
#[unsafe(no_mangle)]
static ARCHITECTURE: [u8; 8] = {
    #[cfg(bpf_target_arch = "aarch64")]
    let name = *b"aarch64\0";
    #[cfg(bpf_target_arch = "x86_64")]
    let name = *b"x86_64\0\0";
    name
};
