//! Marks that a program writes to `trace_marker` itself, taken at the system call.
//!
//! Whether a descriptor is one of `trace_marker` is decided by the open file behind it, at every write: however the
//! process got it (opened, duplicated, inherited, sent by another one), the answer is right, and nothing has to be
//! followed. A file of `trace_marker` is recognized by its operations, which the kernel has once: those of any mount
//! and any instance are the same.
//!
//! The raw tracepoint of all system calls is the cheapest one, and depends on no option of the kernel.

use core::mem::offset_of;

use aya_ebpf::{bindings::pt_regs, macros::raw_tracepoint, programs::RawTracePointContext};

use crate::{
    atomic::add,
    clock,
    helpers::{current_task, monotonic_ns},
    kernel_memory::read,
    maps::{FILE_OFFSETS, MARKER, WRITE_COST},
    mark_text::Paging,
    marks, process, thread,
};

/// Number of the system call `write`.
const WRITE: u64 = if cfg!(bpf_target_arch = "aarch64") { 64 } else { 1 };

/// Offsets of its arguments (descriptor, text, length) in the registers, bytes.
const ARGUMENTS: [u32; 3] = {
    #[cfg(bpf_target_arch = "x86_64")]
    let at = [offset_of!(pt_regs, rdi), offset_of!(pt_regs, rsi), offset_of!(pt_regs, rdx)];
    #[cfg(bpf_target_arch = "aarch64")]
    let at = [offset_of!(pt_regs, regs), offset_of!(pt_regs, regs) + 8, offset_of!(pt_regs, regs) + 16];
    [at[0] as u32, at[1] as u32, at[2] as u32]
};

/// Handles the begin of a system call: `(registers, number)`.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn marker_write(ctx: RawTracePointContext) -> i32 {
    if ctx.arg::<u64>(1) != WRITE {
        return 0;
    }
    let Some(ids) = process::target() else { return 0 };
    let Some(now) = clock::now_inside() else { return 0 };
    let argument = |number: usize| read::<u64>(ctx.arg(0), ARGUMENTS[number]);
    if let (Ok(descriptor), Ok(text), Ok(length)) = (argument(0), argument(1), argument(2))
        && let Some(&marker) = MARKER.get(0)
        && operations(descriptor) == Ok(marker)
        && let Some(thread) = thread::state(now, ids)
    {
        marks::take(Paging::Never, now, ids, thread, text as *const u8, Some(length));
        if let Some(cost) = WRITE_COST.get_ptr_mut(0) {
            // SAFETY: the pointer comes from the map and is not null.
            unsafe {
                add(&raw mut (*cost).count, 1);
                add(&raw mut (*cost).ns, monotonic_ns().wrapping_sub(now));
            }
        }
    }
    0
}

/// Stores the operations of `trace_marker` from the descriptor in its argument. Never attached: user space runs it,
/// and has the file open.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn learn_marker(ctx: RawTracePointContext) -> i32 {
    if let Some(marker) = MARKER.get_ptr_mut(0) {
        let learnt = operations(ctx.arg(0)).unwrap_or(0);
        // SAFETY: the pointer comes from the map and is not null; user space runs this once, before the first write.
        unsafe { *marker = learnt };
    }
    0
}

/// Returns the operations of the file that the task has open as this descriptor.
#[inline(always)]
fn operations(descriptor: u64) -> Result<u64, i32> {
    const NO_FILE: i32 = -9;
    let [files, table, length, slots, operations] = FILE_OFFSETS.load();
    let table: u64 = read(read::<u64>(current_task(), files)?, table)?;
    // A descriptor is an `int`, whatever is in the upper half of its register.
    let descriptor = descriptor & u64::from(u32::MAX);
    if descriptor >= u64::from(read::<u32>(table, length)?) {
        return Err(NO_FILE);
    }
    let slots: u64 = read(table, slots)?;
    let file: u64 = read(slots.wrapping_add(8 * descriptor), 0)?;
    if file == 0 { Err(NO_FILE) } else { read(file, operations) }
}
