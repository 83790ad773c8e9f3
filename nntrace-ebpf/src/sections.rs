//! Pairs of functions that begin and end a section: `atrace_begin_body(name)` and `atrace_end_body()` of libcutils,
//! `ATrace_beginSection(name)` and `ATrace_endSection()` of the NDK. One may call the other, or `tracing_mark_write`,
//! for one mark: see [`nntrace_common::nesting`].

use aya_ebpf::{macros::uprobe, programs::ProbeContext};
use nntrace_common::nested_functions::FunctionKind;

use crate::{clock, mark_text::Paging, marks, nested_functions, task_stack, thread::writer};

/// Handles `begin(const char *name)` of libcutils.
#[uprobe]
pub fn section_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Body, Paging::Never, ctx.arg(0))
}

/// Handles a method `begin(this, const char *name)`.
#[uprobe]
pub fn section_begin_this(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Body, Paging::Never, ctx.arg(1))
}

/// Handles `end()` of libcutils.
#[uprobe]
pub fn section_end(ctx: ProbeContext) -> u32 {
    on_end(&ctx, FunctionKind::Body)
}

/// Handles `begin(const char *name)` of the NDK.
#[uprobe]
pub fn ndk_section_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Ndk, Paging::Never, ctx.arg(0))
}

/// Handles a method `begin(this, const char *name)`.
#[uprobe]
pub fn ndk_section_begin_this(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, FunctionKind::Ndk, Paging::Never, ctx.arg(1))
}

/// Handles `end()` of the NDK.
#[uprobe]
pub fn ndk_section_end(ctx: ProbeContext) -> u32 {
    on_end(&ctx, FunctionKind::Ndk)
}

/// Handles the call of a function that begins a section.
#[inline(always)]
pub fn on_begin(ctx: &ProbeContext, kind: FunctionKind, paging: Paging, name: Option<*const u8>) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(name) = name
        && let Some((ids, thread)) = writer(now)
        && nested_functions::enter(ctx, kind)
    {
        marks::take_section(paging, now, ids, thread, name);
    }
    0
}

#[inline(always)]
fn on_end(ctx: &ProbeContext, kind: FunctionKind) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some((ids, thread)) = writer(now)
        && nested_functions::enter(ctx, kind)
    {
        marks::take_end(now, ids, thread);
    }
    0
}
