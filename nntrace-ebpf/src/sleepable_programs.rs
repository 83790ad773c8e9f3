//! Programs that read texts, for kernels that let them wait for a page: Linux 6.0 and newer.
//!
//! On these kernels every program on a function runs under the lock that lets it sleep, so these cost no more than
//! the others.

use aya_ebpf::{macros::uprobe, programs::ProbeContext};

use nntrace_common::nested_functions::FunctionKind::{Body, Ndk};

use crate::{mark_text::Paging::MayWait, marks, sections};

/// As [`marks::mark_buf`].
#[uprobe(sleepable)]
pub fn mark_buf_sleepable(ctx: ProbeContext) -> u32 {
    marks::on_mark(&ctx, MayWait, ctx.arg(0), None)
}

/// As [`marks::mark_buf_len`].
#[uprobe(sleepable)]
pub fn mark_buf_len_sleepable(ctx: ProbeContext) -> u32 {
    marks::on_mark(&ctx, MayWait, ctx.arg(0), ctx.arg(1))
}

/// As [`marks::mark_this_buf`].
#[uprobe(sleepable)]
pub fn mark_this_buf_sleepable(ctx: ProbeContext) -> u32 {
    marks::on_mark(&ctx, MayWait, ctx.arg(1), None)
}

/// As [`marks::mark_this_buf_len`].
#[uprobe(sleepable)]
pub fn mark_this_buf_len_sleepable(ctx: ProbeContext) -> u32 {
    marks::on_mark(&ctx, MayWait, ctx.arg(1), ctx.arg(2))
}

/// As [`sections::section_begin`].
#[uprobe(sleepable)]
pub fn section_begin_sleepable(ctx: ProbeContext) -> u32 {
    sections::on_begin(&ctx, Body, MayWait, ctx.arg(0))
}

/// As [`sections::section_begin_this`].
#[uprobe(sleepable)]
pub fn section_begin_this_sleepable(ctx: ProbeContext) -> u32 {
    sections::on_begin(&ctx, Body, MayWait, ctx.arg(1))
}

/// As [`sections::ndk_section_begin`].
#[uprobe(sleepable)]
pub fn ndk_section_begin_sleepable(ctx: ProbeContext) -> u32 {
    sections::on_begin(&ctx, Ndk, MayWait, ctx.arg(0))
}

/// As [`sections::ndk_section_begin_this`].
#[uprobe(sleepable)]
pub fn ndk_section_begin_this_sleepable(ctx: ProbeContext) -> u32 {
    sections::on_begin(&ctx, Ndk, MayWait, ctx.arg(1))
}
