//! Changes of the application's phases, numbered in the order in which they come.

use aya_ebpf::bindings::BPF_NOEXIST;
use nntrace_common::app_events::{AppEvent, ExecutionCount, ExecutionKey, MAX_APP_EVENTS};

use crate::{
    maps::{APP_EVENT_COUNTS, APP_EVENTS, DRIVERS, EXECUTIONS},
    ring::add,
};

/// Number of the last change; 0 before the first.
#[inline(always)]
pub fn last() -> u16 {
    APP_EVENT_COUNTS.get(0).map_or(0, |counts| counts.last as u16)
}

/// Keeps a change under the next number, and returns whether there was room. One for which there was none is counted.
#[inline(never)]
#[expect(
    clippy::explicit_counter_loop,
    reason = "a count that begins at 0 shows the verifier where the loop ends"
)]
pub fn push(event: &AppEvent) -> bool {
    /// Numbers that programs on other CPUs may take meanwhile.
    const TRIES: u32 = 8;
    let Some(counts) = APP_EVENT_COUNTS.get_ptr_mut(0) else { return false };
    // SAFETY: the pointer comes from the map and is not null. Who takes a number is settled by the table of events, into
    // which each goes once.
    let mut number = unsafe { (*counts).last } + 1;
    for _ in 0..TRIES {
        if number > u64::from(MAX_APP_EVENTS) {
            break;
        }
        if APP_EVENTS.insert(number as u32, event, u64::from(BPF_NOEXIST)).is_ok() {
            // SAFETY: as above.
            unsafe { (*counts).last = number };
            return true;
        }
        number += 1;
    }
    // SAFETY: the pointer comes from the map and is not null.
    unsafe { add(&raw mut (*counts).lost, 1) };
    false
}

/// Counts an execution of a thread, by one of the two ways, or both.
#[inline(always)]
pub fn count_execution(key: ExecutionKey, creates: u64, executions: u64) {
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
}

/// A process has shown that it is a driver.
#[inline(always)]
pub fn note_driver(tgid: u32) {
    // SAFETY: lookup only; the value is not used.
    if unsafe { DRIVERS.get(tgid) }.is_none() {
        // Beyond the table there are the records.
        let _ = DRIVERS.insert(tgid, &1, 0);
    }
}

/// An execution begins or ends in a driver.
#[inline(always)]
pub fn count_driver_event() {
    if let Some(counts) = APP_EVENT_COUNTS.get_ptr_mut(0) {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(&raw mut (*counts).driver_events, 1) };
    }
}
