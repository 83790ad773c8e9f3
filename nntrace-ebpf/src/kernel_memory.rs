//! Reading the kernel's own structures, at offsets that user space has found out.

use aya_ebpf::helpers::bpf_probe_read_kernel;

/// A type of which any bytes are a value.
pub trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl<const N: usize> Plain for [u8; N] {}

/// The value at so many bytes from an address; the kernel's error where nothing can be read.
#[inline(always)]
pub fn read<T: Plain>(base: u64, offset: u32) -> Result<T, i32> {
    // SAFETY: the helper checks the address, and any bytes are a value of this type.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(u64::from(offset)) as *const T) }
}
