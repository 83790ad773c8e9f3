//! Stubs by which the code of a file reaches functions of other files: the entries of its procedure linkage table.

use crate::live::engines::{
    code::words,
    image::{Image, Machine},
};

/// Functions that release memory: what a call does after a jump to them is little.
const RELEASING: [&str; 9] = [
    "free",
    "_ZdlPv",
    "_ZdlPvm",
    "_ZdlPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPv",
    "_ZdaPvm",
    "cfree",
    "__libc_free",
];

/// Whether code at an address is a stub for a function that releases memory.
pub(super) fn releases_memory(image: &Image<'_>, address: u64) -> bool {
    imported_by(image, address).is_some_and(|name| RELEASING.contains(&name))
}

/// Whether the instruction at an address is a jump without a condition.
pub(in crate::live) fn is_unconditional(image: &Image<'_>, address: u64) -> bool {
    match image.machine() {
        Machine::X86_64 => {
            matches!(image.bytes(address, 2), Some([0xe9 | 0xeb, _] | [0xf2, 0xe9]))
        }
        Machine::Arm64 => image
            .bytes(address, 4)
            .and_then(<[u8]>::first_chunk)
            .is_some_and(|word| u32::from_le_bytes(*word) & 0xfc00_0000 == 0x1400_0000),
    }
}

/// Returns the address of the file's own function that code at an address is a stub for. Another file may have one of the
/// same name that is called in its place.
pub(super) fn own_function(image: &Image<'_>, address: u64) -> Option<u64> {
    Some(image.exported(imported_by(image, address)?)?.address)
}

/// Returns the name of the function that the stub at an address jumps to, which may be in another file.
pub(super) fn imported_by<'data>(image: &Image<'data>, address: u64) -> Option<&'data str> {
    let pointer = match image.machine() {
        Machine::X86_64 => on_x86_64(image.bytes(address, 16)?, address),
        Machine::Arm64 => on_arm64(image.bytes(address, 16)?, address),
    };
    image.imported_function(pointer?)
}

/// Returns the address of the pointer in `jmp *distance(%rip)`, after a landing pad.
fn on_x86_64(code: &[u8], address: u64) -> Option<u64> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    let pad = if code.starts_with(ENDBR64) { ENDBR64.len() } else { 0 };
    let prefix = usize::from(code.get(pad) == Some(&0xf2));
    let jump = code.get(pad + prefix..)?;
    let [0xff, 0x25, a, b, c, d, ..] = *jump else { return None };
    let next = address.wrapping_add((pad + prefix + 6) as u64);
    Some(next.wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d]))))
}

/// Returns the address of the pointer in `adrp; ldr`, after a landing pad.
fn on_arm64(code: &[u8], address: u64) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    let (all, _) = code.as_chunks::<4>();
    let mut all = (0..)
        .step_by(4)
        .map(|at| address.wrapping_add(at))
        .zip(all.iter().map(|word| u32::from_le_bytes(*word)));
    let mut first = all.next()?;
    if first.1 == BTI_C {
        first = all.next()?;
    }
    let page = words::page_or_place(first.1, first.0)?;
    let (register, offset) = words::load_at_offset(all.next()?.1)?;
    (register == words::rd(first.1)).then(|| page.wrapping_add(offset))
}
