//! Marks that a program writes to `trace_marker` itself, seen at the system call.
//!
//! Whether a descriptor is one of `trace_marker` is asked of the open file behind it, at every write: however the process
//! came to it (opened, duplicated, inherited, sent by another one), the answer is right, and nothing has to be followed.
//! A file of `trace_marker` is told by its operations, which the kernel has once: any mount and any instance has the same.

use aya_ebpf::{
    helpers::{bpf_get_current_task, bpf_ktime_get_ns, bpf_probe_read_kernel},
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};

use crate::{
    maps::{FILE_OFFSETS, MARKER},
    marks,
};

/// `write(descriptor, text, length)`.
#[tracepoint(category = "syscalls", name = "sys_enter_write")]
pub fn marker_write(ctx: TracePointContext) -> u32 {
    // What the kernel hands over: the number of the call behind eight bytes, then the arguments.
    const ARGUMENTS: usize = 16;
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(ids) = marks::target() else { return 0 };
    // SAFETY: within what the kernel hands over for any call.
    let argument = |number: usize| unsafe { ctx.read_at::<u64>(ARGUMENTS + 8 * number) };
    if let (Ok(descriptor), Ok(text), Ok(length)) = (argument(0), argument(1), argument(2))
        && let Some(&marker) = MARKER.get(0)
        && operations(descriptor) == Ok(marker)
        && let Some(thread) = marks::thread_of(now, ids)
    {
        marks::take(now, ids, thread, text as *const u8, Some(length));
    }
    0
}

/// Learns what `trace_marker` is from the descriptor that its argument names. Never attached: user space runs it, and has
/// the file open.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn learn_marker(ctx: RawTracePointContext) -> i32 {
    if let Some(marker) = MARKER.get_ptr_mut(0) {
        let learnt = operations(ctx.arg(0)).unwrap_or(0);
        // SAFETY: the pointer comes from the map and is not null; user space runs this once, before the first write.
        unsafe { *marker = learnt };
    }
    0
}

/// The operations of the file that the task has open as this descriptor.
#[inline(always)]
fn operations(descriptor: u64) -> Result<u64, i32> {
    const NO_FILE: i32 = -9;
    let [files, table, length, slots, operations] = FILE_OFFSETS.load();
    // SAFETY: the helper has no precondition.
    let task = unsafe { bpf_get_current_task() };
    let table: u64 = read(read::<u64>(task, files)?, table)?;
    // A descriptor is an `int`, whatever stands above it in its register.
    let descriptor = descriptor & u64::from(u32::MAX);
    if descriptor >= u64::from(read::<u32>(table, length)?) {
        return Err(NO_FILE);
    }
    let slots: u64 = read(table, slots)?;
    let file: u64 = read(slots.wrapping_add(8 * descriptor), 0)?;
    if file == 0 { Err(NO_FILE) } else { read(file, operations) }
}

#[inline(always)]
fn read<T>(base: u64, offset: u32) -> Result<T, i32> {
    // SAFETY: the helper checks the address; every type that is read here is valid whatever its bytes are.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(u64::from(offset)) as *const T) }
}
