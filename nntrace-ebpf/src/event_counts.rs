//! Counters of events, and of entries without room in full tables.

use nntrace_common::event_counts::{EventCounts, Table};

use crate::{atomic::add, log, maps::EVENT_COUNTS};

/// Counts a mark of a traced process.
#[inline(always)]
pub fn mark() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).marks, 1) });
}

/// Counts the call of an engine's function, which is counted as marks as well.
#[inline(always)]
pub fn call() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).calls, 1) });
}

/// Counts a call of an engine's function whose name could not be had.
#[inline(always)]
pub fn unnamed() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).unnamed, 1) });
}

/// Counts a power event.
#[inline(always)]
pub fn power() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).power, 1) });
}

/// Counts a context switch or a wake-up.
#[inline(always)]
pub fn sched() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).sched, 1) });
}

/// Counts a mark of a thread that user space accounts, without room in a ring.
#[inline(always)]
pub fn forward_lost() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).forwards_lost, 1) });
}

/// Counts a mark at which not all events could be read.
#[inline(always)]
pub fn uncounted_mark() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).uncounted_marks, 1) });
}

/// Counts a section whose counts found no room.
#[inline(always)]
pub fn uncounted_section() {
    // SAFETY: a field of a value of the map.
    with(|counts| unsafe { add(&raw mut (*counts).uncounted_sections, 1) });
}

/// Counts an entry without room in a table, and logs that.
#[inline(always)]
pub fn turned_away(table: Table) {
    log::table_full(table);
    count_turned_away(table);
}

/// Counts an entry without room in a table.
#[inline(always)]
pub fn count_turned_away(table: Table) {
    // SAFETY: an element, by a number that is known when this is compiled, of a field of a value of the map.
    with(|counts| unsafe { add((&raw mut (*counts).turned_away).cast::<u64>().add(table as usize), 1) });
}

/// Passes the counters of this CPU to `count`. Programs that preempt each other add to the same ones, hence atomic.
#[inline(always)]
fn with(count: impl FnOnce(*mut EventCounts)) {
    if let Some(counts) = EVENT_COUNTS.get_ptr_mut(0) {
        count(counts);
    }
}
