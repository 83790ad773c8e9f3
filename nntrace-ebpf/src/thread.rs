//! State of the threads that write marks.

use aya_ebpf::bindings::BPF_ANY;
use nntrace_common::{diagnostic::DiagnosticKind, event_counts::Table, record::Thread};

use crate::{
    diagnostics, event_counts, log,
    maps::{NEW_THREAD, THREADS},
    task_ids::{self, Ids},
    traced_processes,
};

/// Returns the current thread and its state, if its process is traced; a full table is counted.
#[inline(always)]
pub fn writer<'a>(now: u64) -> Option<(Ids, &'a mut Thread)> {
    let ids = task_ids::current();
    // A thread that has a state is of a traced process: the state ends with it.
    if let Some(thread) = THREADS.get_ptr_mut(ids.tid) {
        // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
        return Some((ids, unsafe { &mut *thread }));
    }
    let ids = traced_processes::target()?;
    Some((ids, state(now, ids)?))
}

/// Returns the state of a thread, which is the current one; a full table is counted.
#[inline(always)]
pub fn state<'a>(now: u64, ids: Ids) -> Option<&'a mut Thread> {
    let Some(thread) = entry(ids.tid) else {
        event_counts::turned_away(Table::Threads);
        diagnostics::count(DiagnosticKind::TableFull, now, ids.tid);
        return None;
    };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    Some(unsafe { &mut *thread })
}

/// Returns the state of this thread, created at its first mark; `None` when the table is full.
#[inline(always)]
fn entry(tid: u32) -> Option<*mut Thread> {
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        return Some(thread);
    }
    let empty = NEW_THREAD.get(0)?;
    THREADS.insert(tid, empty, u64::from(BPF_ANY)).ok()?;
    log::first_mark(tid);
    THREADS.get_ptr_mut(tid)
}
