//! Exact totals of closed sections, by process, path and the application's phases.

use aya_ebpf::bindings::BPF_NOEXIST;
use nntrace_common::{
    diagnostic::DiagnosticKind,
    event_counts::Table,
    layer::{Layer, Phase, Tag},
    record::{ANY_SLOT, SpanRecord, Total, TotalKey},
    stack::Closed,
};

use crate::{
    app_events,
    atomic::add,
    diagnostics, event_counts, log,
    maps::{CREATE_NAME, PATHS, SLOT_TOTALS, THREADS, TOTAL_COUNT, TOTALS},
    ring::{self, Wake},
    task_ids::Ids,
};

const WARM_UP: u8 = Tag::new(Layer::Application, Phase::WarmUp).index();
const BENCHMARK: u8 = Tag::new(Layer::Application, Phase::Benchmark).index();
const EXECUTION: u8 = Tag::new(Layer::Application, Phase::Execution).index();

/// Error of the kernel when a table has no room for another entry: `E2BIG`.
pub const TABLE_FULL: i32 = -7;

/// Stores the steps of the path of this thread's frame that was at `depth`, and was just closed. Returns 0 unless there is
/// no room for one: it is not logged here, where hardly any stack is left.
///
/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn name_path(tid: u32, depth: u32) -> u32 {
    let mut is_full = 0;
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
        let stack = unsafe { &(*thread).stack };
        stack.steps(depth as u8, |path, step| {
            // An existing path is the same path.
            if PATHS.insert(path, &step, u64::from(BPF_NOEXIST)) == Err(TABLE_FULL) {
                event_counts::count_turned_away(Table::Paths);
                is_full = 1;
            }
        });
    }
    is_full
}

/// Adds a closed frame to the totals, and emits it.
///
/// A function of its own to the verifier: it is called from two places, and is long.
#[inline(never)]
pub fn store(ids: Ids, is_marked: bool, closed: &Closed) {
    let Ids { tgid, tid } = ids;
    let counted = if is_marked { 0 } else { tid };
    let key = TotalKey { path: closed.path, tgid, tid: counted, slot: u32::from(closed.slot), reserved: 0 };
    let total = TOTALS.get_ptr_mut(key).or_else(|| other_total(key, tid, closed));
    if let Some(total) = total {
        // SAFETY: the pointer comes from the map and is not null. A thread that preempts this one on the same CPU
        // may add to the same entry, hence atomic.
        unsafe {
            add(&raw mut (*total).count, 1);
            if closed.adds.to_total() {
                add(&raw mut (*total).own, closed.own);
            }
            add(&raw mut (*total).exclusive, closed.exclusive);
        }
    }
    count_application(ids, closed);
    ring::emit_with(|| SpanRecord::new(tgid, tid, is_marked, closed), Wake::WhenHalfFull);
}

/// Returns the entry for totals that have none of their own yet: a new one by the application's phases while there is
/// room for such, else that of any phase.
#[inline(always)]
fn other_total(key: TotalKey, tid: u32, closed: &Closed) -> Option<*mut Total> {
    let made = TOTAL_COUNT.get_ptr_mut(0)?;
    // SAFETY: the pointer comes from the map and is not null; a slightly old count moves the bound a little.
    let key = if unsafe { *made } < u64::from(SLOT_TOTALS.load()) {
        key
    } else {
        TotalKey { slot: ANY_SLOT, ..key }
    };
    TOTALS.get_ptr_mut(key).or_else(|| {
        if name_path(tid, u32::from(closed.depth)) != 0 {
            log::table_full(Table::Paths);
        }
        if TOTALS.insert(key, &Total::default(), u64::from(BPF_NOEXIST)).is_ok() {
            // SAFETY: the pointer comes from the map and is not null.
            unsafe { add(made, 1) };
        }
        // Another thread may have been faster: only without an entry now is the table full.
        let total = TOTALS.get_ptr_mut(key);
        if total.is_none() {
            event_counts::turned_away(Table::Totals);
            diagnostics::count(DiagnosticKind::TableFull, closed.end, tid);
        }
        total
    })
}

/// Counts a closed frame for reports beside its time: as the end of a phase of the application, or an execution.
#[inline(always)]
fn count_application(ids: Ids, closed: &Closed) {
    let slot = u32::from(closed.slot);
    let tag = closed.tag.index();
    let creates = closed.name == CREATE_NAME.load();
    let executes = tag == EXECUTION;
    if creates || executes {
        app_events::count_execution(ids.tgid, ids.tid, slot, u64::from(creates), u64::from(executes));
    }
    end_phase(ids, closed);
}

/// Stores the end of a phase of the application, if a closed frame is one.
#[inline(always)]
pub fn end_phase(ids: Ids, closed: &Closed) {
    let tag = closed.tag.index();
    if tag == WARM_UP || tag == BENCHMARK {
        // An end without room is still in its section's record.
        app_events::ends(ids, u32::from(closed.slot), closed.begin, closed.end);
    }
}
