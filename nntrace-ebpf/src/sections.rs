//! Pairs of functions that begin and end a section: `atrace_begin_body(name)` and `atrace_end_body()` of libcutils,
//! `ATrace_beginSection(name)` and `ATrace_endSection()` of the NDK.
//!
//! One mark may pass several functions on its way: `ATrace_beginSection` calls `atrace_begin_body`. The outermost one
//! counts: what a thread enters before the mark function that it is in has returned is a part of that mark. The stack
//! tells: a function that was called stands lower on it, and where it was when it was entered is forgotten when it
//! returns. A return that is missed does no harm for long, since whoever stands higher ends it too.

use aya_ebpf::{
    EbpfContext as _,
    bindings::pt_regs,
    macros::{uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use nntrace_common::record::Thread;

use crate::{
    maps::{NESTING, THREADS},
    marks,
    text::Paging,
    window,
};

/// `begin(const char *name)`.
#[uprobe]
pub fn section_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, Paging::Never, ctx.arg(0))
}

/// A method: `begin(this, const char *name)`.
#[uprobe]
pub fn section_begin_this(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, Paging::Never, ctx.arg(1))
}

/// `end()`.
#[uprobe]
pub fn section_end(ctx: ProbeContext) -> u32 {
    if let Some(now) = window::now_inside()
        && let Some((ids, thread)) = marks::writer(now)
        && enter(&ctx, thread)
    {
        marks::take_end(now, ids, thread);
    }
    0
}

/// A mark function returns. Attached only where one may call another.
#[uretprobe]
pub fn mark_return(ctx: RetProbeContext) -> u32 {
    if let Some(thread) = THREADS.get_ptr_mut(ctx.pid()) {
        // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
        let thread = unsafe { &mut *thread };
        // SAFETY: the registers that the program was called with.
        if stack_pointer(unsafe { &*ctx.regs }) >= thread.inside {
            thread.inside = 0;
        }
    }
    0
}

/// A function that begins a section is called.
#[inline(always)]
pub fn on_begin(ctx: &ProbeContext, paging: Paging, name: Option<*const u8>) -> u32 {
    if let Some(now) = window::now_inside()
        && let Some(name) = name
        && let Some((ids, thread)) = marks::writer(now)
        && enter(ctx, thread)
    {
        marks::take_section(paging, now, ids, thread, name);
    }
    0
}

/// A thread enters a mark function; `false` when it is in another one.
#[inline(always)]
pub fn enter(ctx: &ProbeContext, thread: &mut Thread) -> bool {
    if NESTING.get(0) != Some(&1) {
        return true;
    }
    // SAFETY: the registers that the program was called with.
    let stack = stack_pointer(unsafe { &*ctx.regs });
    if thread.inside != 0 && stack <= thread.inside {
        return false;
    }
    thread.inside = stack;
    true
}

#[inline(always)]
fn stack_pointer(registers: &pt_regs) -> u64 {
    #[cfg(bpf_target_arch = "x86_64")]
    let at = registers.rsp;
    #[cfg(bpf_target_arch = "aarch64")]
    let at = registers.sp;
    at
}
