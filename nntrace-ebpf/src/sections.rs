//! Pairs of functions that begin and end a section: `atrace_begin_body(name)` and `atrace_end_body()` of libcutils,
//! `ATrace_beginSection(name)` and `ATrace_endSection()` of the NDK. One may call the other, or `tracing_mark_write`, for
//! one mark: see [`nntrace_common::nesting`].

use aya_ebpf::{
    EbpfContext as _, bindings::pt_regs, helpers::bpf_probe_read_user, macros::uprobe, programs::ProbeContext,
};
use nntrace_common::{
    nesting::{Entry, FunctionKind, MarkCode},
    record::Thread,
};

use crate::{
    maps::{MARK_CODE, NESTING},
    marks,
    text::Paging,
    window,
};

/// `begin(const char *name)` of libcutils.
#[uprobe]
pub fn section_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Body, Paging::Never, ctx.arg(0))
}

/// A method: `begin(this, const char *name)`.
#[uprobe]
pub fn section_begin_this(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Body, Paging::Never, ctx.arg(1))
}

/// `end()` of libcutils.
#[uprobe]
pub fn section_end(ctx: ProbeContext) -> u32 {
    on_end(&ctx, FunctionKind::Body)
}

/// `begin(const char *name)` of the NDK.
#[uprobe]
pub fn ndk_section_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Ndk, Paging::Never, ctx.arg(0))
}

/// A method: `begin(this, const char *name)`.
#[uprobe]
pub fn ndk_section_begin_this(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Ndk, Paging::Never, ctx.arg(1))
}

/// `end()` of the NDK.
#[uprobe]
pub fn ndk_section_end(ctx: ProbeContext) -> u32 {
    on_end(&ctx, FunctionKind::Ndk)
}

/// A function that begins a section is called.
#[inline(always)]
pub fn on_begin(ctx: &ProbeContext, kind: FunctionKind, paging: Paging, name: Option<*const u8>) -> u32 {
    if let Some(now) = window::now_inside()
        && let Some(name) = name
        && let Some((ids, thread)) = marks::writer(now)
        && enter_kind(ctx, kind, thread)
    {
        marks::take_section(paging, now, ids, thread, name);
    }
    0
}

#[inline(always)]
fn on_end(ctx: &ProbeContext, kind: FunctionKind) -> u32 {
    if let Some(now) = window::now_inside()
        && let Some((ids, thread)) = marks::writer(now)
        && enter_kind(ctx, kind, thread)
    {
        marks::take_end(now, ids, thread);
    }
    0
}

/// A thread enters a function that is handed a whole mark; `false` when that is a part of another one's mark.
#[inline(always)]
pub fn enter(ctx: &ProbeContext, thread: &mut Thread) -> bool {
    enter_kind(ctx, FunctionKind::Mark, thread)
}

/// A thread enters a mark function; `false` when that is a part of another one's mark.
#[inline(always)]
fn enter_kind(ctx: &ProbeContext, kind: FunctionKind, thread: &mut Thread) -> bool {
    if NESTING.get(0) != Some(&1) {
        return true;
    }
    // SAFETY: the registers that the program was called with.
    let Some(mut entry) = entry_of(unsafe { &*ctx.regs }, kind) else { return true };
    // The same in all processes, as files are mapped by pages.
    if let Some(code) = MARK_CODE.get((entry.address & 0xfff) as u32) {
        entry.code = *code;
    }
    thread.nesting.enter(&entry, words)
}

/// The two words at an address of the process that runs.
#[inline(always)]
fn words(address: u64) -> Option<[u64; 2]> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()
}

/// How a function was entered, by its first instructions, which have left all registers as they were.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn entry_of(registers: &pt_regs, kind: FunctionKind) -> Option<Entry> {
    let (sp, address, frame) = (registers.rsp, registers.rip, registers.rbp);
    // SAFETY: the helper checks the address.
    let return_address = unsafe { bpf_probe_read_user(sp as *const u64) }.ok()?;
    Some(Entry { kind, address, code: MarkCode::default(), sp, return_address, frame })
}

/// How a function was entered, by its first instructions, which have left all registers as they were.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn entry_of(registers: &pt_regs, kind: FunctionKind) -> Option<Entry> {
    let (frame, return_address) = (registers.regs[29], registers.regs[30]);
    let (address, sp) = (registers.pc, registers.sp);
    Some(Entry { kind, address, code: MarkCode::default(), sp, return_address, frame })
}
