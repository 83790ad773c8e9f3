//! Addition to counters that several programs share.

/// Adds to a counter that a preempting program may add to as well.
///
/// # Safety
/// `counter` must point into a map value.
#[inline(always)]
pub unsafe fn add(counter: *mut u64, value: u64) {
    // `core` has no atomic add for this target; this instruction is in every kernel that has BPF.
    // SAFETY: the caller's; every map value is aligned to eight bytes.
    unsafe {
        core::arch::asm!(
            "lock *(u64 *)({counter} + 0) += {value}",
            counter = in(reg) counter,
            value = in(reg) value,
        );
    }
}
