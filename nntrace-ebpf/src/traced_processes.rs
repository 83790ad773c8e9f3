//! The traced processes. Forks of traced processes are followed, threads that end are forgotten.

use aya_ebpf::{
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};
use nntrace_common::{
    creds::NOBODY,
    diagnostic::DiagnosticKind,
    record::{ProcessRecord, RecordKind, TARGET},
};

use crate::{
    clock, diagnostics, express,
    helpers::{current_task, monotonic_ns},
    kernel_memory, log,
    maps::{
        CREDS_OFFSETS, FORK_CHILD_OFFSET, LIVE_THREADS_OFFSETS, OWNER, PID_NAMESPACE_NUMBER, TARGETS, THREADS,
    },
    perf_counters,
    ring::{self, Wake},
    sched,
    task_ids::{self, Ids},
};

/// Returns the current thread, if its process is traced.
#[inline(always)]
pub fn target() -> Option<Ids> {
    let ids = task_ids::current();
    // SAFETY: lookup only; the value is not used.
    unsafe { TARGETS.get(ids.tgid) }.map(|_| ids)
}

/// Handles a fork: a child of a traced process is traced from its first instruction on.
///
/// The new task may be a thread: its id is then no process's, and does no harm until the thread ends and is removed.
#[tracepoint(category = "sched", name = "sched_process_fork")]
pub fn process_fork(ctx: TracePointContext) -> u32 {
    // SAFETY: the offset is the one that the kernel's own description of the event gives.
    if let Ok(child) = unsafe { ctx.read_at::<u32>((FORK_CHILD_OFFSET.load() & 0xff) as usize) } {
        forked(child);
    }
    0
}

/// Handles the form of [`process_fork`] that names tasks: `(parent, child)`. In a PID namespace of our own their ids are others
/// than in the described form.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn raw_process_fork(ctx: RawTracePointContext) -> i32 {
    let child = task_ids::of_task(ctx.arg(1));
    if child != 0 {
        forked(child);
    }
    0
}

#[inline(always)]
fn forked(child: u32) {
    let Some(Ids { tgid: parent, tid }) = target() else { return };
    if TARGETS.insert(child, &TARGET, 0).is_ok() {
        log::fork(child, parent);
    } else {
        log::targets_full(child);
        diagnostics::count(DiagnosticKind::TableFull, monotonic_ns(), child);
    }
    emit(RecordKind::Fork, parent, child, tid);
}

/// Handles an exec of a traced process: other objects have to be probed.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn process_exec(ctx: RawTracePointContext) -> i32 {
    if let Some(Ids { tgid, tid }) = target() {
        log::exec(tgid);
        if !may_be_traced() {
            let _ = TARGETS.remove(tgid);
        }
        // What was open belongs to the program that is gone.
        forget(tgid, tid);
        // The thread that runs it may have had another id so far. In a PID namespace of our own it is not known any more.
        let former = if PID_NAMESPACE_NUMBER.load() == 0 { ctx.arg::<u32>(1) } else { tid };
        forget(tgid, former);
        if former != tgid {
            sched::renamed(former, tgid);
        }
        emit(RecordKind::Exec, tgid, tid, 0);
    }
    0
}

/// Handles the end of a task.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn process_exit(_ctx: RawTracePointContext) -> i32 {
    let Ids { tgid, tid } = task_ids::current();
    // SAFETY: lookups only; the values are not used.
    let is_ours = unsafe { TARGETS.get(tgid).is_some() || THREADS.get(tid).is_some() };
    if !is_ours {
        return 0;
    }
    // A process ends with its last thread, which need not be the main one: another process may get its id at once. Threads
    // that end together may find it removed.
    if tid != tgid {
        let _ = TARGETS.remove(tid);
    }
    if is_last_thread() {
        log::exit(tgid);
        let _ = TARGETS.remove(tgid);
    }
    // Sections open at the end of the window are left for user space to read.
    if clock::now().is_none() {
        return 0;
    }
    let mut forwarded = 0;
    // SAFETY: the entry is this thread's own, and it is ending.
    if let Some(thread) = unsafe { THREADS.get(tid) } {
        forwarded = thread.express.next;
        let unseen = thread.engines.perhaps_ended(thread.stack.depth());
        let open = thread.stack.open_sections().saturating_sub(unseen);
        // User space knows what is open on the threads that it accounts.
        if open > 0 && thread.is_marked != 0 && !thread.express.is_on() {
            let begin = thread.stack.first_begin();
            diagnostics::count_many(DiagnosticKind::OpenAtEnd, u64::from(open), begin, tid);
        }
    }
    forget(tgid, tid);
    emit(RecordKind::Exit, tgid, tid, forwarded);
    0
}

/// Whether no thread of the current process goes on; `false` where the offsets are not known. Source: kernel/exit.c, `do_exit`
/// counts the thread as ended before the tracepoint.
#[inline(always)]
fn is_last_thread() -> bool {
    let [signal, live] = LIVE_THREADS_OFFSETS.load();
    if live == 0 {
        return false;
    }
    let signal = kernel_memory::read::<u64>(current_task(), signal);
    signal.and_then(|signal| kernel_memory::read::<u32>(signal, live)) == Ok(0)
}

/// Whether the program that the current process now runs has no more privileges than the user who traces it: what he may not
/// trace by himself is traced no more. Source: kernel/ptrace.c, `__ptrace_may_access`.
#[inline(always)]
fn may_be_traced() -> bool {
    let [user, group] = OWNER.load();
    if user == NOBODY {
        return true;
    }
    let offsets = CREDS_OFFSETS.load();
    if offsets.creds == 0 {
        return false;
    }
    let Ok(creds) = kernel_memory::read::<u64>(current_task(), offsets.creds) else { return false };
    kernel_memory::read::<u32>(creds, offsets.user) == Ok(user)
        && kernel_memory::read::<u32>(creds, offsets.group) == Ok(group)
        && kernel_memory::read::<u64>(creds, offsets.capabilities) == Ok(0)
}

/// Removes the state of a thread.
#[inline(always)]
fn forget(tgid: u32, tid: u32) {
    // SAFETY: lookup only; the value is read before it is removed.
    if let Some(thread) = unsafe { THREADS.get(tid) } {
        express::ended(Ids { tgid, tid }, thread);
        perf_counters::forget(tid);
        let _ = THREADS.remove(tid);
    }
}

/// Emits an event to user space at once; returns whether there was room in the ring, and the window is not over.
#[inline(always)]
pub fn emit(kind: RecordKind, tgid: u32, tid: u32, detail: u32) -> bool {
    let Some(time) = clock::now() else { return false };
    ring::emit(ProcessRecord { kind: kind as u32, tgid, tid, detail, time }, Wake::Now)
}
