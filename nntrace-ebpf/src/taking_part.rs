//! The moment from which a thread takes part in the accounting: what it showed before counts as well.

use nntrace_common::{
    diagnostic::{DiagnosticKind, HeldCount, HeldDiagnostics},
    record::{ProcessRecord, RecordKind, Thread},
};

use crate::{
    diagnostics,
    maps::THREADS,
    ring::{self, Wake},
    task_ids::{self, Ids},
};

/// Counts the diagnostics that the current thread held, and reports it if sections of it may have been stored.
#[inline(always)]
pub fn begins(now: u64) {
    thread_takes_part(now);
}

/// A global function, which the verifier checks once, for any arguments.
///
/// It is called with little stack left: so the ids are asked for, twice, and the counts are not an iterator's.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn thread_takes_part(now: u64) -> u32 {
    let tid = task_ids::current().tid;
    let Some(thread) = THREADS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { held, has_calls, .. } = unsafe { &mut *thread };
    for kind in DiagnosticKind::OF_STACKS {
        let HeldCount { count, first_ns } = held.of(kind);
        if count > 0 {
            diagnostics::count_many(kind, count, first_ns, tid);
        }
    }
    // They are not handed over to user space again.
    *held = HeldDiagnostics::NONE;
    if *has_calls != 0 {
        let (kind, Ids { tgid, tid }) = (RecordKind::TakesPart as u32, task_ids::current());
        ring::emit(ProcessRecord { kind, tgid, tid, detail: 0, time: now }, Wake::WhenHalfFull);
    }
    0
}
