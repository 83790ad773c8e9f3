//! The moment from which a thread takes part in the accounting: what it showed before counts as well.

use nntrace_common::{
    diagnostic::HeldDiagnostics,
    record::{ProcessRecord, RecordKind, Thread},
};

use crate::{
    diagnostics,
    maps::THREADS,
    ring::{self, Wake},
    traced_processes::Ids,
};

/// Counts the diagnostics that were held, and reports the thread if sections of it may have been stored.
#[inline(always)]
pub fn begins(ids: Ids, now: u64) {
    thread_takes_part(ids.tgid, ids.tid, now);
}

/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn thread_takes_part(tgid: u32, tid: u32, now: u64) -> u32 {
    let Some(thread) = THREADS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { held, has_calls, .. } = unsafe { &mut *thread };
    for (kind, held) in held.iter() {
        diagnostics::count_many(kind, held.count, held.first_ns, tid);
    }
    // They are not handed over to user space again.
    *held = HeldDiagnostics::NONE;
    if *has_calls != 0 {
        let kind = RecordKind::TakesPart as u32;
        ring::emit(ProcessRecord { kind, tgid, tid, detail: 0, time: now }, Wake::WhenHalfFull);
    }
    0
}
