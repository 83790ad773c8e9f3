//! Changes of the application's phases, numbered in order of time.

use aya_ebpf::bindings::BPF_NOEXIST;
use nntrace_common::app_events::{AppChange, AppEvent, ExecutionCount, ExecutionKey, MAX_APP_EVENTS};

use crate::{
    atomic::add,
    log,
    maps::{APP_EVENT_COUNTS, APP_EVENTS, DRIVERS, EXECUTIONS},
    task_ids::Ids,
};

/// Returns the number of the last change; 0 before the first.
#[inline(always)]
pub fn last() -> u16 {
    APP_EVENT_COUNTS.get(0).map_or(0, |counts| counts.last as u16)
}

/// Stores the begin of a report or of a phase under the next number; returns whether there was room.
#[inline(always)]
pub fn begins(ids: Ids, change: u32, now: u64, name: u64) -> bool {
    push_app_event(packed(ids.tgid, ids.tid), packed(change, 0), now, now, name) != 0
}

/// Stores the end of the phase that the change `begun_by` began.
#[inline(always)]
pub fn ends(ids: Ids, begun_by: u32, begin: u64, end: u64) {
    push_app_event(packed(ids.tgid, ids.tid), packed(AppChange::PhaseEnds as u32, begun_by), end, begin, 0);
}

/// Packs two numbers into one, as a function of this kind takes five arguments.
#[inline(always)]
const fn packed(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// Stores a change under the next number; returns 1 when there was room. A change without room is counted.
///
/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
#[expect(
    clippy::explicit_counter_loop,
    reason = "a count that begins at 0 shows the verifier where the loop ends"
)]
extern "C" fn push_app_event(ids: u64, change: u64, time: u64, begin: u64, name: u64) -> u32 {
    /// Numbers that programs on other CPUs may take in between.
    const TRIES: u32 = 8;
    let event = AppEvent {
        change: (change >> 32) as u32,
        begun_by: change as u32,
        tgid: (ids >> 32) as u32,
        tid: ids as u32,
        time,
        begin,
        name,
    };
    let Some(counts) = APP_EVENT_COUNTS.get_ptr_mut(0) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null. The table of events decides who gets a number, as each
    // goes in once.
    let mut number = unsafe { (*counts).last } + 1;
    for _ in 0..TRIES {
        if number > u64::from(MAX_APP_EVENTS) {
            break;
        }
        if APP_EVENTS.insert(number as u32, &event, u64::from(BPF_NOEXIST)).is_ok() {
            // A program that was interrupted here may come after those that took the next numbers.
            // SAFETY: as above.
            if unsafe { (*counts).last } < number {
                // SAFETY: as above.
                unsafe { (*counts).last = number };
            }
            return 1;
        }
        number += 1;
    }
    // SAFETY: the pointer comes from the map and is not null.
    unsafe { add(&raw mut (*counts).lost, 1) };
    0
}

/// Counts an execution of a thread, in one of the two ways, or both.
///
/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn count_execution(tgid: u32, tid: u32, slot: u32, creates: u64, executions: u64) -> u32 {
    let key = ExecutionKey { tgid, tid, slot };
    if EXECUTIONS.get_ptr_mut(key).is_none()
        && EXECUTIONS.insert(key, &ExecutionCount::default(), u64::from(BPF_NOEXIST)).is_err()
        && let Some(counts) = APP_EVENT_COUNTS.get_ptr_mut(0)
    {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(&raw mut (*counts).lost, 1) };
    }
    if let Some(count) = EXECUTIONS.get_ptr_mut(key) {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe {
            add(&raw mut (*count).creates, creates);
            add(&raw mut (*count).executions, executions);
        }
    }
    0
}

/// Records that a process has turned out to be a driver.
#[inline(always)]
pub fn note_driver(tgid: u32) {
    // SAFETY: lookup only; the value is not used.
    if unsafe { DRIVERS.get(tgid) }.is_none() {
        log::driver(tgid);
        // Beyond the table there are the records.
        let _ = DRIVERS.insert(tgid, &1, 0);
    }
}

/// Counts the begin or the end of an execution in a driver.
#[inline(always)]
pub fn count_driver_event() {
    if let Some(counts) = APP_EVENT_COUNTS.get_ptr_mut(0) {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(&raw mut (*counts).driver_events, 1) };
    }
}
