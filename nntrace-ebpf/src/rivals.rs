//! Turns of threads that are not traced, on CPUs that traced ones wait for.
//!
//! A turn is reported when it ends, by the switch away from it: by then it is known whether a traced thread waited
//! meanwhile, and the name is that of the thread that runs. A thread that is moved to another CPU while it waits
//! counts for the first one until it runs.

use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid};
use nntrace_common::{rivals::RivalRecord, sched::Change};

use crate::{
    atomic,
    maps::{AWAITED_CPUS, IS_RECORDED, WAITING_THREADS},
    ring::{self, Wake},
    task_ids::Ids,
};

/// Handles a switch away from the current thread to `next`; `change` is `None` if the current one is not traced.
#[inline(always)]
pub fn switched(ids: Ids, change: Option<Change>, next: u32, cpu: u32, now: u64) {
    if IS_RECORDED.load() == 0 {
        return;
    }
    let Some(awaited) = AWAITED_CPUS.get_ptr_mut(cpu) else { return };
    // SAFETY: values of an array are never removed. Programs on other CPUs write `waiting` and `was_awaited` in between, which are
    // words of their own: what comes after this reading counts for the next turn, or is seen by it.
    let (waiting, was_awaited, since) =
        unsafe { ((*awaited).waiting, (*awaited).was_awaited, (*awaited).since) };
    // SAFETY: as above; only switches on this CPU write `since`.
    unsafe { ((*awaited).was_awaited, (*awaited).since) = (0, now) };
    match change {
        // It may have been woken while it ran.
        Some(Change::Preempted) => {
            gets_cpu(ids.tid);
            waits(ids.tid, cpu);
        }
        Some(_) => gets_cpu(ids.tid),
        None if (waiting != 0 || was_awaited != 0) && !is_idle() => emit(ids, cpu, since, now),
        None => {}
    }
    // Whoever gets the CPU waits no more, also if it is not traced since.
    if waiting != 0 {
        gets_cpu(next);
    }
}

/// A traced thread waits for a CPU from now on.
#[inline(always)]
pub fn waits(tid: u32, cpu: u32) {
    /// Fails where the thread waits already (`BPF_NOEXIST`).
    const NEW_ONLY: u64 = 1;
    if IS_RECORDED.load() != 0
        && WAITING_THREADS.insert(tid, &cpu, NEW_ONLY).is_ok()
        && let Some(awaited) = AWAITED_CPUS.get_ptr_mut(cpu)
    {
        // SAFETY: the pointer comes from the map and is not null; the other word is set to the same by everyone.
        unsafe {
            atomic::add(&raw mut (*awaited).waiting, 1);
            (*awaited).was_awaited = 1;
        }
    }
}

/// A traced thread does not wait any more.
#[inline(always)]
pub fn gets_cpu(tid: u32) {
    if IS_RECORDED.load() == 0 {
        return;
    }
    // SAFETY: a word; the entry is removed by the switch to the thread alone, and a thread is on one CPU at a time.
    let Some(cpu) = (unsafe { WAITING_THREADS.get(tid) }).copied() else { return };
    if WAITING_THREADS.remove(tid).is_ok()
        && let Some(awaited) = AWAITED_CPUS.get_ptr_mut(cpu)
    {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { atomic::add(&raw mut (*awaited).waiting, u64::MAX) };
    }
}

/// Whether the idle thread runs. In a PID namespace threads outside of it have no id either, but on the host.
#[inline(always)]
fn is_idle() -> bool {
    bpf_get_current_pid_tgid() as u32 == 0
}

/// Emits a turn. A function to the verifier as well: the record would take much of the caller's stack.
#[inline(never)]
fn emit(ids: Ids, cpu: u32, begin: u64, end: u64) {
    let name = bpf_get_current_comm().unwrap_or_default();
    ring::emit(RivalRecord::new((ids.tgid, ids.tid), cpu, (begin, end), name), Wake::WhenHalfFull);
}
