//! Reading the text of a mark from the memory of its process.
//!
//! The first read takes no page fault, which is enough where the process has just written the text. A literal in a
//! page that nobody has touched yet, as in a forked child, is not in memory: programs that may wait have the page
//! brought in, and read again. Only the result of the last read is used, as the text may change in between.

use core::{mem::offset_of, ptr, slice};

use aya_ebpf::{
    bindings::BPF_ANY,
    helpers::{
        bpf_probe_read_user_buf,
        generated::{bpf_copy_from_user, bpf_probe_read_user_str},
    },
};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    event_counts::PageWait,
    mark::{self, Kind, MARK_BYTES},
    record::NameText,
    verifier_bounds::masked,
};

use crate::{clock, diagnostics, log, maps::PAGE_WAITS, task_ids::Ids};

/// Permission of a program to wait until a page is brought in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// No permission: before Linux 6.0 the kernel has no programs that may wait, and never at system calls.
    Never,
    /// The program may wait.
    MayWait,
}

/// Size of the smallest page, bytes: larger page sizes are multiples.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a text at most: one in the buffer is left for the NUL, with and without a length.
const ROOM: usize = MARK_BYTES - 1;

/// Whether a payload is the end of a section: of that, two bytes are all there is to read. `false` if they are not in memory.
#[inline(always)]
pub fn is_end(payload: *const u8) -> bool {
    let mut first = [0_u8; 2];
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user_buf(payload, &mut first) }.is_ok()
        && matches!(mark::kind(&first[..]), Some(Kind::End))
}

/// Reads a payload that is odd into `mark`, as an example.
#[inline(always)]
pub fn read_example(payload: *const u8, mark: &mut NameText) {
    clear(mark);
    let read = string(payload, mark);
    mark.len = if read > 0 { (read - 1).cast_unsigned() as u32 } else { 0 };
}

/// Reads the payload into `mark`, followed by zeros; returns its length without the NUL, `None` when it could not be
/// read.
#[inline(always)]
pub fn read(
    paging: Paging,
    payload: *const u8,
    length: Option<u64>,
    mark: &mut NameText,
    now: u64,
    ids: Ids,
) -> Option<usize> {
    clear(mark);
    let read = match length {
        Some(length) => read_bytes(paging, payload, length, mark, now, ids),
        None => read_string(paging, payload, mark, now, ids),
    };
    // A mark after the window does not count.
    if read.is_none() && clock::now().is_some() {
        diagnostics::count(DiagnosticKind::UnreadableMark, now, ids.tid);
    }
    read
}

#[inline(always)]
fn read_bytes(
    paging: Paging,
    payload: *const u8,
    length: u64,
    mark: &mut NameText,
    now: u64,
    ids: Ids,
) -> Option<usize> {
    // An `int` leaves the upper half of its register undefined.
    let wanted = length as u32 as usize;
    let len = wanted.min(ROOM);
    if len == 0 {
        return Some(0);
    }
    // The mask proves the size to the verifier, where it is used: on older kernels, as 6.1, the verifier does not learn
    // of a number on the stack by comparing its copy in a register.
    let room = &mut mark.payload[..masked(len, MARK_BYTES)];
    // SAFETY: the helper checks the address.
    let mut read = unsafe { bpf_probe_read_user_buf(payload, room) };
    if paging == Paging::MayWait
        && read.is_err()
        && wait_for(payload, now, ids)
        && wait_for(payload.wrapping_add(len - 1), now, ids)
    {
        let room = &mut mark.payload[..masked(len, MARK_BYTES)];
        // SAFETY: as above.
        read = unsafe { bpf_probe_read_user_buf(payload, room) };
    }
    read.ok()?;
    if wanted > ROOM {
        mark.len = ROOM as u32;
        diagnostics::count_mark(DiagnosticKind::TruncatedMark, now, ids.tid);
    }
    Some(len)
}

#[inline(always)]
fn read_string(paging: Paging, payload: *const u8, mark: &mut NameText, now: u64, ids: Ids) -> Option<usize> {
    let mut read = string(payload, mark);
    if paging == Paging::MayWait && read < 0 && wait_for(payload, now, ids) {
        read = string(payload, mark);
        // The text continues in the next page, then. If it ends before, that page does not matter.
        let next = payload.wrapping_add(PAGE_BYTES - payload.addr() % PAGE_BYTES);
        if read < 0 && wait_for(next, now, ids) {
            read = string(payload, mark);
        }
    }
    if read < 0 {
        return None;
    }
    // The length read includes the NUL.
    let len = if read > 0 { (read - 1).cast_unsigned() as usize & ROOM } else { 0 };
    if len == ROOM {
        // The buffer is full: the last byte shows whether there was more.
        let (mut next, at) = (0_u8, payload.wrapping_add(ROOM));
        // SAFETY: the helper checks the address.
        let mut more = unsafe { bpf_probe_read_user_buf(at, slice::from_mut(&mut next)) };
        if paging == Paging::MayWait && more.is_err() && wait_for(at, now, ids) {
            // SAFETY: as above.
            more = unsafe { bpf_probe_read_user_buf(at, slice::from_mut(&mut next)) };
        }
        if more.is_ok() && next != 0 {
            mark.len = ROOM as u32;
            diagnostics::count_mark(DiagnosticKind::TruncatedMark, now, ids.tid);
        }
    }
    Some(len)
}

/// Reads up to the NUL; returns the number of bytes including it, or the error.
#[inline(always)]
pub fn string(payload: *const u8, mark: &mut NameText) -> i64 {
    // SAFETY: the helper checks the address, and writes no more than the size it is given. The checked wrapper
    // would return a slice whose length the verifier cannot follow.
    unsafe { bpf_probe_read_user_str(mark.payload.as_mut_ptr().cast(), MARK_BYTES as u32, payload.cast()) }
}

/// Waits until the page of this address is in memory; `false` when there is none, or when the window is over by then.
#[inline(always)]
pub fn wait_for(address: *const u8, now: u64, ids: Ids) -> bool {
    bring_in_page(address as u64, now, ids.tgid, ids.tid) != 0 && clock::now().is_some()
}

/// Copies one byte, which needs the page, and no other.
///
/// The provider of the page, such as a file system in user space, may never answer the fault: the wait is recorded,
/// so that user space sees it before it removes the probe, which would wait as well. A global function, which the
/// verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn bring_in_page(address: u64, since: u64, tgid: u32, tid: u32) -> u32 {
    let wait = PageWait { since, tgid, reserved: 0 };
    if PAGE_WAITS.insert(tid, &wait, u64::from(BPF_ANY)).is_err() {
        log::page_waits_full(tid);
        return 0;
    }
    log::page_wait(tid);
    let mut byte = 0_u8;
    // SAFETY: the helper checks the address, and writes one byte.
    let copied = unsafe { bpf_copy_from_user((&raw mut byte).cast(), 1, address as *const _) };
    let _ = PAGE_WAITS.remove(tid);
    u32::from(copied == 0)
}

/// Zeros the payload, eight bytes at a time. As one assignment it may be a call that goes byte by byte. The word
/// after [`MARK_BYTES`] is zero from [`NEW_THREAD`](crate::maps::NEW_THREAD) on: it is never written.
#[inline(always)]
pub fn clear(mark: &mut NameText) {
    const { assert!(align_of::<NameText>() == 8 && offset_of!(NameText, payload).is_multiple_of(8)) };
    let words: *mut u64 = mark.payload.as_mut_ptr().cast();
    for at in 0..MARK_BYTES / 8 {
        // SAFETY: inside of the payload, whose begin is a multiple of eight; volatile, so that the compiler does not
        // turn it into one assignment.
        unsafe { ptr::write_volatile(words.add(at), 0) };
    }
}
