//! Counting of diagnostics.
//!
//! These are global functions, which the verifier checks once, for any arguments, and not again for every path to
//! them. They take plain numbers, so the current mark is looked up.

use core::{mem::offset_of, ptr};

use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind, Diagnostics, EXAMPLE_BYTES},
    mark::MARK_BYTES,
    record::{NameText, Thread},
};

use crate::{
    atomic::add,
    log,
    maps::{DIAGNOSTICS, THREADS},
};

/// Counts a diagnostic of a thread.
#[inline(always)]
pub fn count(kind: DiagnosticKind, now: u64, tid: u32) {
    count_many(kind, 1, now, tid);
}

/// Counts several diagnostics of a kind at once.
#[inline(always)]
pub fn count_many(kind: DiagnosticKind, times: u64, now: u64, tid: u32) {
    count_diagnostics(kind as u32, times, now, tid);
}

/// Counts a diagnostic of the current mark, and keeps the first such mark as an example.
#[inline(always)]
pub fn count_mark(kind: DiagnosticKind, now: u64, tid: u32) {
    keep_example(kind as u32, tid);
    count(kind, now, tid);
}

/// Counts the diagnostics of the current mark, or holds them while its thread takes no part in the accounting.
#[inline(always)]
pub fn count_all(odd: Diagnostics, now: u64, tid: u32) {
    if !odd.is_empty() {
        count_odd_marks(odd.bits(), now, tid);
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_diagnostics(kind: u32, times: u64, now: u64, tid: u32) -> u32 {
    log::diagnostic(kind, tid);
    if let Some(entry) = entry(kind) {
        if entry.count == 0 {
            entry.first_ns = now;
            entry.tid = tid;
        }
        // SAFETY: a valid reference; a program that preempts this one may count too, hence atomic.
        unsafe { add(&raw mut entry.count, times) };
    }
    0
}

/// Keeps the current mark as the example of a kind that was not counted yet.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_example(kind: u32, tid: u32) -> u32 {
    if let Some(entry) = entry(kind)
        && entry.count == 0
        && let Some(thread) = THREADS.get_ptr_mut(tid)
    {
        // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
        let mark = unsafe { &(*thread).mark };
        let len = mark.len as usize;
        entry.len = if len < EXAMPLE_BYTES { len as u32 } else { EXAMPLE_BYTES as u32 };
        copy_example(mark, entry);
    }
    0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_odd_marks(odd: u32, now: u64, tid: u32) -> u32 {
    let odd = Diagnostics::from_bits(odd);
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
        let Thread { is_marked, held, .. } = unsafe { &mut *thread };
        if *is_marked == 0 {
            held.add(odd, now);
            return 0;
        }
    }
    for kind in DiagnosticKind::OF_STACKS {
        if odd.has(kind) {
            count_mark(kind, now, tid);
        }
    }
    0
}

/// Copies the first bytes of a mark, word by word. As one assignment, all of them would be loaded before the first is
/// stored, and wait on the stack.
#[inline(always)]
fn copy_example(mark: &NameText, entry: &mut DiagnosticCount) {
    const { assert!(offset_of!(NameText, payload).is_multiple_of(8) && EXAMPLE_BYTES <= MARK_BYTES) };
    const { assert!(offset_of!(DiagnosticCount, example).is_multiple_of(8) && EXAMPLE_BYTES.is_multiple_of(8)) };
    let from: *const u64 = mark.payload.as_ptr().cast();
    let to: *mut u64 = entry.example.as_mut_ptr().cast();
    for at in 0..EXAMPLE_BYTES / 8 {
        // SAFETY: inside of both texts, whose begins are multiples of eight; volatile, so that the compiler does not turn
        // it into one assignment.
        unsafe { ptr::write_volatile(to.add(at), ptr::read_volatile(from.add(at))) };
    }
}

#[inline(always)]
fn entry<'a>(kind: u32) -> Option<&'a mut DiagnosticCount> {
    // SAFETY: the pointer comes from the map and is not null.
    DIAGNOSTICS.get_ptr_mut(kind).map(|entry| unsafe { &mut *entry })
}
