//! Counts of performance events by section: see [`nntrace_common::perf_counters`].
//!
//! Programs that may sleep cannot use the table of events, so none of this is in them: user space does not load them
//! where events are counted.

use core::ptr;

use aya_ebpf::{
    bindings::{BPF_F_CURRENT_CPU, BPF_NOEXIST, bpf_perf_event_value},
    helpers::generated::bpf_perf_event_read_value,
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};
use nntrace_common::{
    perf_counters::{CountsKey, MAX_COUNTERS, Reading, ThreadCounters},
    record::Forwarding,
    stack::{Closed, Stack},
};

use crate::{
    atomic::add,
    engines::{packed, unpacked},
    event_counts,
    helpers::monotonic_ns,
    maps::{
        COUNTER_EVENTS, COUNTER_TRIAL, COUNTERS, NEW_THREAD_COUNTERS, NO_SECTION_COUNTS, SECTION_COUNTS,
        THREAD_COUNTERS,
    },
    mark_text::Paging,
    sched,
    task_ids::{self, Ids},
};

/// Readings of a trial.
const TRIALS: u64 = 64;

/// Charges what the current thread has counted to the innermost section of its stack, before a mark changes that.
#[inline(always)]
pub fn charge(paging: Paging, ids: Ids, stack: &Stack, express: &Forwarding) {
    // User space accounts threads whose marks are forwarded, and reads no events.
    if paging == Paging::Never && COUNTERS.load() != 0 && !express.is_on() {
        charge_thread(ids.tid, u32::from(stack.innermost()));
    }
}

/// Adds the counts of a section of the current thread's stack that has ended to those of its function.
#[inline(always)]
pub fn close(ids: Ids, is_marked: bool, closed: &Closed) {
    if COUNTERS.load() != 0 {
        let counted = if is_marked { 0 } else { ids.tid };
        let what = u32::from(closed.depth) << 8 | u32::from(closed.tag.index());
        close_thread_section(packed(ids), counted, what, closed.name);
    }
}

/// Forgets a thread.
#[inline(always)]
pub fn forget(tid: u32) {
    if COUNTERS.load() != 0 {
        let _ = THREAD_COUNTERS.remove(tid);
    }
}

/// A global function, as the next one: the verifier checks each once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn charge_thread(tid: u32, section: u32) -> u32 {
    let Some(counters) = of_thread(tid) else {
        event_counts::uncounted_mark();
        return 0;
    };
    if !counters.charge(COUNTERS.load(), section, read) {
        event_counts::uncounted_mark();
    }
    0
}

/// Layer and phase are in the lowest eight bits of `what`, the place on the stack is above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn close_thread_section(who: u64, counted: u32, what: u32, name: u64) -> u32 {
    let Ids { tgid, tid } = unpacked(who);
    let Some(counters) = THREAD_COUNTERS.get_ptr_mut(tid) else { return 0 };
    let key = CountsKey { name, tgid, tid: counted, tag: what & 0xff, reserved: 0 };
    if SECTION_COUNTS.get_ptr_mut(key).is_none()
        && let Some(none) = NO_SECTION_COUNTS.get(0)
    {
        // Another thread may have been faster.
        let _ = SECTION_COUNTS.insert(key, none, u64::from(BPF_NOEXIST));
    }
    let sum = SECTION_COUNTS.get_ptr_mut(key);
    if sum.is_none() {
        event_counts::uncounted_section();
    }
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    unsafe { &mut *counters }.close(COUNTERS.load(), what >> 8, |number, reading| {
        if let Some(sum) = sum {
            // SAFETY: the pointer comes from the map and is not null; a thread that preempts this one on the same CPU may
            // add to the same entry, hence atomic. The number is one of a counter.
            unsafe {
                let place = (&raw mut (*sum).readings).cast::<Reading>().add(number);
                add(&raw mut (*place).count, reading.count);
                add(&raw mut (*place).enabled, reading.enabled);
                add(&raw mut (*place).running, reading.running);
            }
        }
    });
    if let Some(sum) = sum {
        // SAFETY: as above.
        unsafe { add(&raw mut (*sum).sections, 1) };
    }
    0
}

/// Returns the counts of the current thread, created at its first mark; `None` when the table is full.
#[inline(always)]
fn of_thread<'a>(tid: u32) -> Option<&'a mut ThreadCounters> {
    if THREAD_COUNTERS.get_ptr_mut(tid).is_none() {
        let _ = THREAD_COUNTERS.insert(tid, NEW_THREAD_COUNTERS.get(0)?, u64::from(BPF_NOEXIST));
    }
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry, and switches of it.
    THREAD_COUNTERS.get_ptr_mut(tid).map(|counters| unsafe { &mut *counters })
}

/// Reads an event on the current CPU; `false` where it does not count there.
#[inline(always)]
fn read(number: u32, into: &mut Reading) -> bool {
    let Some(events) = COUNTER_EVENTS.get(number) else { return false };
    let events = ptr::from_ref(events).cast_mut().cast();
    let into = ptr::from_mut(into).cast::<bpf_perf_event_value>();
    // SAFETY: the map is one of events, and the value has the layout of the kernel's.
    unsafe { bpf_perf_event_read_value(events, BPF_F_CURRENT_CPU, into, size_of::<Reading>() as u32) == 0 }
}

/// Handles a CPU's switch from one thread to another: `(preempt, prev, next, ..)`.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn raw_counter_switch(ctx: RawTracePointContext) -> i32 {
    switched(task_ids::current().tid, task_ids::of_task(ctx.arg(2)));
    0
}

/// Handles the described form of [`raw_counter_switch`].
#[tracepoint(category = "sched", name = "sched_switch")]
pub fn counter_switch(ctx: TracePointContext) -> u32 {
    switched(task_ids::current().tid, sched::next_id(&ctx));
    0
}

#[inline(always)]
fn switched(from: u32, to: u32) {
    // SAFETY: the pointer comes from the map and is not null; the thread is interrupted.
    if let Some(counters) = of_switched(from).map(|counters| unsafe { &mut *counters }) {
        counters.leave(COUNTERS.load(), read);
    }
    // SAFETY: as above; the thread does not run yet.
    if let Some(counters) = of_switched(to).map(|counters| unsafe { &mut *counters }) {
        counters.arrive(COUNTERS.load(), read);
    }
}

/// Returns the counts of a thread, if it has any. Idle tasks have none, and are most of those that are switched to.
#[inline(always)]
fn of_switched(tid: u32) -> Option<*mut ThreadCounters> {
    if tid == 0 { None } else { THREAD_COUNTERS.get_ptr_mut(tid) }
}

/// Measures the cost of reading all events. Never attached: user space runs it.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn counter_trial(_: RawTracePointContext) -> i32 {
    let Some(trial) = COUNTER_TRIAL.get_ptr_mut(0) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; user space runs this once.
    let trial = unsafe { &mut *trial };
    let mut reading = Reading::default();
    let begin = monotonic_ns();
    for round in 0..=TRIALS {
        for number in 0..MAX_COUNTERS {
            if number as u32 >= COUNTERS.load() {
                break;
            }
            if read(number as u32, &mut reading) && (round == 0 || round == TRIALS) {
                trial.counted[number] = reading.count.wrapping_sub(trial.counted[number]);
            }
        }
    }
    trial.ns = monotonic_ns().wrapping_sub(begin);
    trial.count = TRIALS + 1;
    0
}
