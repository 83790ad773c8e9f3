//! Reads of the kernel's own structures, at offsets determined by user space.

use aya_ebpf::helpers::bpf_probe_read_kernel;

/// Type that is valid for any bytes.
pub trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl<const N: usize> Plain for [u8; N] {}

/// Reads the value at an offset from an address; returns the kernel's error where that is not possible.
#[inline(always)]
pub fn read<T: Plain>(base: u64, offset: u32) -> Result<T, i32> {
    // SAFETY: the helper checks the address, and any bytes are a value of this type.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(u64::from(offset)) as *const T) }
}
