//! What the scheduler does with the threads of traced processes.
//!
//! Loaded only when that is asked for: these events are the most frequent there are. They are read as the kernel's own
//! descriptions have them; their raw forms hand over a task, whose layout differs from build to build.
//!
//! [`TARGETS`] holds threads beside processes: those that user space found, those that were forked since, and all that
//! have left a CPU meanwhile.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_smp_processor_id, bpf_probe_read_kernel},
    macros::tracepoint,
    programs::TracePointContext,
};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    record::{RecordKind, SchedRecord},
    sched::Change,
};

use crate::{
    maps::{RING_COUNTS, SCHED_OFFSETS, TARGETS},
    marks::count_one,
    power,
    ring::{self, Wake},
};

/// A CPU goes from one thread, which is still the current one, to another.
#[tracepoint(category = "sched", name = "sched_switch")]
pub fn sched_switch(ctx: TracePointContext) -> u32 {
    let offsets = SCHED_OFFSETS.load();
    let Some(now) = power::now() else { return 0 };
    let (tgid, tid) = (ctx.tgid(), ctx.pid());
    if is_traced(tgid)
        && let Some(state) = field(&ctx, offsets.prev_state)
    {
        let change = Change::of_state(state);
        if change == Change::Ends {
            if tid != tgid {
                let _ = TARGETS.remove(tid);
            }
        } else if !is_traced(tid) && TARGETS.insert(tid, &1, 0).is_err() {
            count_one(DiagnosticKind::TableFull, now, tid, None);
        }
        emit(tid, tgid, now, change);
    }
    if let Some(next) = field(&ctx, offsets.next_pid)
        && is_traced(next)
    {
        emit(next, 0, now, Change::In);
    }
    0
}

/// A thread is woken.
#[tracepoint(category = "sched", name = "sched_wakeup")]
pub fn sched_wakeup(ctx: TracePointContext) -> u32 {
    woken(&ctx, Change::Woken)
}

/// A new thread is woken for the first time.
#[tracepoint(category = "sched", name = "sched_wakeup_new")]
pub fn sched_wakeup_new(ctx: TracePointContext) -> u32 {
    woken(&ctx, Change::New)
}

#[inline(always)]
fn woken(ctx: &TracePointContext, change: Change) -> u32 {
    if let Some(tid) = field(ctx, SCHED_OFFSETS.load().woken_pid)
        && is_traced(tid)
        && let Some(now) = power::now()
    {
        emit(tid, 0, now, change);
    }
    0
}

/// Whether a process or a thread is traced.
#[inline(always)]
fn is_traced(id: u32) -> bool {
    // SAFETY: lookup only; the value is not used.
    unsafe { TARGETS.get(id) }.is_some()
}

/// A field of four bytes, or the lower four of a longer one.
#[inline(always)]
fn field(ctx: &TracePointContext, offset: u32) -> Option<u32> {
    // SAFETY: the offset is the one that the kernel's own description of the event gives.
    unsafe { bpf_probe_read_kernel(ctx.as_ptr().wrapping_byte_add(offset as usize).cast()) }.ok()
}

/// A function to the verifier as well: it is called from several places.
#[inline(never)]
fn emit(tid: u32, tgid: u32, time: u64, change: Change) {
    // SAFETY: the helper has no precondition.
    let cpu = unsafe { bpf_get_smp_processor_id() } as u32;
    let counts = RING_COUNTS.get_ptr(0);
    // SAFETY: the pointer comes from the map and is not null.
    let lost = counts.map_or(0, |counts| unsafe { (*counts).dropped } as u32);
    let record =
        SchedRecord { kind: RecordKind::Sched as u32, tid, tgid, cpu, time, change: change as u32, lost };
    ring::emit(record, Wake::WhenHalfFull);
}
