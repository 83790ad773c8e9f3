//! Indices and reads that the kernel's verifier accepts.

/// Returns the same value, about which the compiler knows nothing in the kernel.
///
/// The compiler uses what it knows to remove checks and to reorder sums, and the result proves nothing to the
/// verifier, which examines registers one by one.
#[must_use]
#[inline(always)]
pub fn opaque(value: usize) -> usize {
    #[cfg(target_arch = "bpf")]
    let value = {
        let mut value = value;
        // SAFETY: moves a register to itself. (No instruction at all would leave two lines of debug information at
        // one address, which the kernel refuses.)
        unsafe { core::arch::asm!("{0} = {0}", inout(reg) value, options(pure, nomem, nostack)) };
        value
    };
    value
}

/// Reduces `index` to below `size`, a power of two, by a mask that remains even if the compiler has seen a
/// comparison.
#[must_use]
#[inline(always)]
pub fn masked(index: usize, size: usize) -> usize {
    debug_assert!(size.is_power_of_two());
    opaque(index) & (size - 1)
}

/// Returns the eight bytes at `at`, at most `SIZE - 8` as proven to the verifier ([`masked`]), the first one lowest.
#[must_use]
#[inline(always)]
pub fn word<const SIZE: usize>(bytes: &[u8; SIZE], at: usize) -> u64 {
    debug_assert!(at + 8 <= SIZE);
    #[cfg(target_arch = "bpf")]
    {
        let from = bytes.as_ptr().wrapping_add(at);
        let word: u64;
        // SAFETY: reads eight bytes inside of the array, or the program is refused. As one instruction, which the
        // compiler would not use: it assumes that the target has no unaligned loads, unlike the kernel's verifier
        // (64-bit Arm, x86-64).
        unsafe {
            core::arch::asm!("{0} = *(u64 *)({1} + 0)", out(reg) word, in(reg) from, options(pure, readonly, nostack));
        }
        word
    }
    #[cfg(not(target_arch = "bpf"))]
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
