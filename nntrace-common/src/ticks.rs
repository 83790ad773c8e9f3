//! The processor's counter, which runs at a constant rate: cheaper to read than a clock, which the kernel makes of it.
//!
//! It is good for times only where the kernel itself uses it as its clock source: `tsc` on x86-64, `arch_sys_counter` on
//! arm64 (`/sys/devices/system/clocksource/clocksource0/current_clocksource`). A program may read it then, as the reading
//! of any clock does.

/// Returns the counter. It may be read before instructions in front of it have ended.
#[must_use]
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    let ticks = unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    let ticks = {
        let ticks: u64;
        // SAFETY: the register is readable in user space, and nothing else is touched.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    };
    ticks
}

/// Returns the counter, read after everything that the thread did before.
#[must_use]
#[inline(always)]
pub fn ordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches nothing.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
    now()
}
