//! Scheduling events of the threads of traced processes.
//!
//! Loaded on request only: these are the most frequent events. Their raw forms pass tasks, for which the offset of
//! the id has to be known, and since Linux 5.18 the state; otherwise the events are read by the kernel's
//! descriptions. The kernel skips programs of that kind while it handles maps on the same CPU.
//!
//! A wake-up shows twice: where it is asked for (`sched_waking`), and when the thread is ready (`sched_wakeup`). Since Linux 6.0 a
//! CPU that is idle, or is in another cache than the one that wakes, makes the thread ready on its own, after its idle state: only the
//! first shows when and by whom it was woken. A thread that was about to sleep then is seen to sleep after it, and only the second
//! shows that it has been woken.
//!
//! [`TARGETS`] contains threads beside processes: those that user space found, those that were forked since, and all
//! that have left a CPU in the meantime.

use aya_ebpf::{
    EbpfContext,
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    record::{RecordKind, SchedRecord},
    sched::{Change, PreemptCount},
};

use crate::{
    atomic, clock, diagnostics, event_counts,
    helpers::{current_cpu, current_task},
    kernel_memory::read,
    log,
    maps::{PREEMPT_COUNT, RING_COUNTS, SCHED_OFFSETS, TARGETS},
    ring::{self, Wake},
    rivals,
    task_ids::{self, Ids},
};

/// Handles a CPU's switch from one thread, which is still the current one, to another:
/// `(preempt, prev, next, prev_state)`.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn raw_sched_switch(ctx: RawTracePointContext) -> i32 {
    // A `bool` leaves the upper part of its register undefined.
    let preempted = ctx.arg::<u8>(0) & 1 != 0;
    let change = if preempted { Change::Preempted } else { Change::of_task(ctx.arg(3)) };
    switched(task_ids::current(), Some(change), task_ids::of_task(ctx.arg(2)));
    0
}

/// Handles the wake-up of a thread where it is asked for: `(task)`.
#[raw_tracepoint(tracepoint = "sched_waking")]
pub fn raw_sched_waking(ctx: RawTracePointContext) -> i32 {
    woken(task_ids::of_task(ctx.arg(0)), Change::Woken, waker, || None);
    0
}

/// Handles the wake-up of a thread: `(task)`.
#[raw_tracepoint(tracepoint = "sched_wakeup")]
pub fn raw_sched_wakeup(ctx: RawTracePointContext) -> i32 {
    woken(task_ids::of_task(ctx.arg(0)), Change::Woken, nobody, || cpu_of_task(ctx.arg(0)));
    0
}

/// Handles the first wake-up of a new thread: `(task)`.
#[raw_tracepoint(tracepoint = "sched_wakeup_new")]
pub fn raw_sched_wakeup_new(ctx: RawTracePointContext) -> i32 {
    woken(task_ids::of_task(ctx.arg(0)), Change::New, nobody, || cpu_of_task(ctx.arg(0)));
    0
}

/// Handles the described form of [`raw_sched_switch`].
#[tracepoint(category = "sched", name = "sched_switch")]
pub fn sched_switch(ctx: TracePointContext) -> u32 {
    let offsets = SCHED_OFFSETS.load();
    let change = field(&ctx, offsets.prev_state).map(Change::of_state);
    switched(task_ids::current(), change, next_id(&ctx));
    0
}

/// Handles the described form of [`raw_sched_waking`].
#[tracepoint(category = "sched", name = "sched_waking")]
pub fn sched_waking(ctx: TracePointContext) -> u32 {
    woken(woken_id(&ctx), Change::Woken, waker, || None);
    0
}

/// Handles the described form of [`raw_sched_wakeup`].
#[tracepoint(category = "sched", name = "sched_wakeup")]
pub fn sched_wakeup(ctx: TracePointContext) -> u32 {
    woken(woken_id(&ctx), Change::Woken, nobody, || woken_cpu(&ctx));
    0
}

/// Handles the described form of [`raw_sched_wakeup_new`].
#[tracepoint(category = "sched", name = "sched_wakeup_new")]
pub fn sched_wakeup_new(ctx: TracePointContext) -> u32 {
    woken(woken_id(&ctx), Change::New, nobody, || woken_cpu(&ctx));
    0
}

#[inline(always)]
fn switched(ids: Ids, change: Option<Change>, next: u32) {
    let Ids { tgid, tid } = ids;
    let Some(now) = clock::now() else { return };
    event_counts::sched();
    let is_ours = is_traced(tgid);
    // If the change is not known, the thread may still be runnable.
    let changed = if is_ours { Some(change.unwrap_or(Change::Preempted)) } else { None };
    rivals::switched(ids, changed, next, current_cpu(), now);
    if is_ours && let Some(change) = change {
        if change == Change::Ends {
            if tid != tgid {
                let _ = TARGETS.remove(tid);
            }
        } else if !is_traced(tid) && TARGETS.insert(tid, &1, 0).is_err() {
            log::targets_full(tid);
            diagnostics::count(DiagnosticKind::TableFull, now, tid);
        }
        emit(tid, tgid, now, change);
    }
    if is_traced(next) {
        rivals::gets_cpu(next);
        emit(next, 0, now, Change::In);
    }
}

#[inline(always)]
fn woken(tid: u32, change: Change, by: impl FnOnce() -> u32, waits_on: impl FnOnce() -> Option<u32>) {
    event_counts::sched();
    if is_traced(tid)
        && let Some(now) = clock::now()
    {
        if let Some(cpu) = waits_on() {
            rivals::waits(tid, cpu);
        }
        emit(tid, by(), now, change);
    }
}

/// Returns the id of the thread that wakes another one; 0 where an interrupt does, or that is not known, and for the idle thread.
#[inline(always)]
fn waker() -> u32 {
    match preempt_count() {
        Some(count) if !PreemptCount::is_in_interrupt(count) => task_ids::current().tid,
        _ => 0,
    }
}

/// Where a thread becomes ready is not where it was woken.
#[inline(always)]
const fn nobody() -> u32 {
    0
}

#[inline(always)]
fn preempt_count() -> Option<u32> {
    let way = PREEMPT_COUNT.load();
    if !way.is_known() {
        return None;
    }
    let task = current_task();
    let base = if way.queue == 0 {
        task
    } else {
        let queue: u64 = read(task, way.queue).ok()?;
        read(queue, way.run_queue).ok()?
    };
    read(base.wrapping_add_signed(way.counter), 0).ok()
}

/// Reads the id of the thread that a switch is to, from its described form; 0 where it is not known.
#[inline(always)]
pub fn next_id(ctx: &TracePointContext) -> u32 {
    field(ctx, SCHED_OFFSETS.load().next_pid).unwrap_or(0)
}

/// As [`next_id`], for the thread that is woken.
#[inline(always)]
fn woken_id(ctx: &TracePointContext) -> u32 {
    field(ctx, SCHED_OFFSETS.load().woken_pid).unwrap_or(0)
}

/// Reads the CPU that a task is on, or waits for; `None` where that is not known.
#[inline(always)]
fn cpu_of_task(task: u64) -> Option<u32> {
    let offset = SCHED_OFFSETS.load().task_cpu;
    if offset == 0 { None } else { read(task, offset).ok() }
}

/// As [`cpu_of_task`], for the thread that is woken.
#[inline(always)]
fn woken_cpu(ctx: &TracePointContext) -> Option<u32> {
    let offset = SCHED_OFFSETS.load().woken_cpu;
    if offset == 0 { None } else { field(ctx, offset) }
}

/// Whether a process or a thread is traced; an unknown one, 0, never is.
#[inline(always)]
fn is_traced(id: u32) -> bool {
    // SAFETY: lookup only; the value is not used.
    unsafe { TARGETS.get(id) }.is_some()
}

/// Reads a field of four bytes, or the lower four of a longer one.
#[inline(always)]
fn field(ctx: &TracePointContext, offset: u32) -> Option<u32> {
    read(ctx.as_ptr() as u64, offset).ok()
}

/// Emits the exec of a thread that is not the leader of its process: from here on it has the leader's id.
#[inline(always)]
pub fn renamed(tid: u32, tgid: u32) {
    let _ = TARGETS.remove(tid);
    if let Some(now) = clock::now() {
        emit(tid, tgid, now, Change::Renamed);
    }
}

/// Emits a record. A function to the verifier as well, as it is called from several places.
///
/// Switches and wake-ups come one at a time on a CPU: the count is that of the records lost before this one.
#[inline(never)]
fn emit(tid: u32, tgid: u32, time: u64, change: Change) {
    let counts = RING_COUNTS.get_ptr_mut(0);
    // SAFETY: the pointer comes from the map and is not null.
    let lost = counts.map_or(0, |counts| unsafe { (*counts).sched_dropped } as u32);
    let record = SchedRecord {
        kind: RecordKind::Sched as u32,
        tid,
        tgid,
        cpu: current_cpu(),
        time,
        change: change as u32,
        lost,
    };
    if !ring::emit(record, Wake::WhenHalfFull)
        && let Some(counts) = counts
    {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { atomic::add(&raw mut (*counts).sched_dropped, 1) };
    }
}
