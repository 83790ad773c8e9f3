//! Helpers of the kernel that take no arguments and cannot fail.

use aya_ebpf::helpers::{
    bpf_get_current_task, bpf_get_smp_processor_id, bpf_ktime_get_boot_ns, bpf_ktime_get_ns,
};

/// Returns the number of the current CPU.
#[inline(always)]
pub fn current_cpu() -> u32 {
    // SAFETY: the helper has no precondition.
    (unsafe { bpf_get_smp_processor_id() }) as u32
}

/// Address of the task that runs.
#[inline(always)]
pub fn current_task() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_get_current_task() }
}

/// Returns `CLOCK_MONOTONIC`, ns.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_ns() }
}

/// Returns `CLOCK_BOOTTIME`, ns, which includes suspend.
#[inline(always)]
pub fn boot_ns() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_boot_ns() }
}
