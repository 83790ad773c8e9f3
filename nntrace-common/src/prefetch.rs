//! Lines of the cache, fetched before they are needed: one that another processor has written or read last takes longer to come
//! than all the rest of a mark.

use core::sync::atomic::AtomicU64;

/// Fetches the line of a word that will be read.
#[inline(always)]
pub fn to_read(word: &AtomicU64) {
    let word: *const AtomicU64 = word;
    // SAFETY: nothing is accessed, and every x86-64 processor has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("prefetcht0 [{}]", in(reg) word, options(nostack, preserves_flags));
    }
    // SAFETY: nothing is accessed.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) word, options(nostack, preserves_flags));
    }
}

/// Fetches the line of a word that will be written, away from the processor that has it.
#[inline(always)]
pub fn to_write(word: &AtomicU64) {
    let word: *const AtomicU64 = word;
    // SAFETY: nothing is accessed, and processors that do not know the instruction pass over it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags));
    }
    // SAFETY: nothing is accessed.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) word, options(nostack, preserves_flags));
    }
}
