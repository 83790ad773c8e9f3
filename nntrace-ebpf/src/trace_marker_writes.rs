//! Marks that a program writes to `trace_marker` itself, taken at the system call.
//!
//! A file of `trace_marker` is recognized by its operations, which the kernel has once: those of any mount and any
//! instance are the same.
//!
//! The raw tracepoint of all system calls is the cheapest one, and depends on no option of the kernel.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};

use crate::{
    clock,
    maps::MARKER,
    mark_text::Paging,
    marks,
    system_calls::{self, WRITE, operations},
    thread, traced_processes,
};

/// Handles the begin of a system call: `(registers, number)`.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn marker_write(ctx: RawTracePointContext) -> i32 {
    if ctx.arg::<u64>(1) != WRITE {
        return 0;
    }
    let Some(ids) = traced_processes::target() else { return 0 };
    let Some(now) = clock::now_inside() else { return 0 };
    let argument = |number: usize| system_calls::argument(ctx.arg(0), number);
    if let (Ok(descriptor), Ok(text), Ok(length)) = (argument(0), argument(1), argument(2))
        && let Some(&marker) = MARKER.get(0)
        && operations(descriptor) == Ok(marker)
        && let Some(thread) = thread::state(now, ids)
    {
        marks::take(Paging::Never, now, ids, thread, text as *const u8, Some(length));
        system_calls::add_cost(now);
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
