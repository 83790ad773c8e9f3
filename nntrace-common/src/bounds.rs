//! Indices that the kernel's verifier accepts.

/// `index` reduced to below `size`, a power of two.
///
/// Where the compiler has seen a comparison it drops a mask as needless, and what is left proves nothing to the
/// verifier, which looks at registers one by one. Here it cannot: in the kernel the value comes out of thin air.
#[inline(always)]
pub fn masked(index: usize, size: usize) -> usize {
    debug_assert!(size.is_power_of_two());
    #[cfg(target_arch = "bpf")]
    let index = {
        let mut index = index;
        // SAFETY: moves a register to itself. (No instruction at all would leave two lines of debug information at
        // one address, which the kernel refuses.)
        unsafe { core::arch::asm!("{0} = {0}", inout(reg) index, options(pure, nomem, nostack)) };
        index
    };
    index & (size - 1)
}
