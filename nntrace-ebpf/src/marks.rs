//! Marks: uprobes on `tracing_mark_write`, one program per argument layout.

use core::{mem::offset_of, ptr};

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST},
    helpers::{bpf_get_current_pid_tgid, bpf_probe_read_user_buf, generated::bpf_probe_read_user_str},
    macros::uprobe,
    programs::ProbeContext,
};
use nntrace_common::{
    app_events::AppEvent,
    diagnostic::{DiagnosticKind, Diagnostics},
    mark::{self, Begin, Captured, Kind, Label, MARK_BYTES},
    record::{BeginRecord, NameText, RecordKind, Thread, TrackRecord},
    stack::Stack,
};

use crate::{
    app_events,
    maps::{MEANINGS, NAMES, NEW_THREAD, TELL_BEGINS, THREADS},
    oddities,
    process::{self, Ids},
    ring::{self, Wake},
    sections, totals, window,
};

/// `f(const char *payload)`.
#[uprobe]
pub fn mark_buf(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, ctx.arg(0), None)
}

/// `f(const char *payload, size_t length)`.
#[uprobe]
pub fn mark_buf_len(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, ctx.arg(0), ctx.arg(1))
}

/// A method: `f(this, const char *payload)`.
#[uprobe]
pub fn mark_this_buf(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, ctx.arg(1), None)
}

/// A method: `f(this, const char *payload, size_t length)`.
#[uprobe]
pub fn mark_this_buf_len(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, ctx.arg(1), ctx.arg(2))
}

#[inline(always)]
fn on_mark(ctx: &ProbeContext, payload: Option<*const u8>, length: Option<u64>) -> u32 {
    if let Some(now) = window::now_inside()
        && let Some(payload) = payload
        && let Some((ids, thread)) = writer(now)
        && sections::enter(ctx, thread)
    {
        take(now, ids, thread, payload, length);
    }
    0
}

/// The thread that runs and its state, if its process is traced; a full table is counted.
#[inline(always)]
pub fn writer<'a>(now: u64) -> Option<(Ids, &'a mut Thread)> {
    let ids = process::target()?;
    Some((ids, thread_of(now, ids)?))
}

/// The state of a thread, which is the one that runs; a full table is counted.
#[inline(always)]
pub fn thread_of<'a>(now: u64, ids: Ids) -> Option<&'a mut Thread> {
    let Some(thread) = thread(ids.tid) else {
        oddities::count(DiagnosticKind::TableFull, now, ids.tid);
        return None;
    };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    Some(unsafe { &mut *thread })
}

/// Takes a mark of `tracing_mark_write`'s form.
#[inline(always)]
pub fn take(now: u64, ids: Ids, thread: &mut Thread, payload: *const u8, length: Option<u64>) {
    let Thread { stack, mark, begin: parsed, takes_part, odd, .. } = thread;
    let Some(len) = read(payload, length, mark, now, ids.tid) else { return };
    if through_memory(&mut mark.len, len as u32) == 0 {
        oddities::count(DiagnosticKind::EmptyMark, now, ids.tid);
        return;
    }
    let text = Captured::of(&mark.payload);
    match mark::kind(text) {
        Some(Kind::Begin) => {
            let parsed = through_memory(parsed, mark::begin(text));
            let found = begin(now, ids, stack, mark, parsed, takes_part);
            oddities::count_all(through_memory(odd, found), now, ids.tid);
        }
        Some(Kind::End) => {
            let found = end(now, ids, stack, *takes_part);
            oddities::count_all(through_memory(odd, found), now, ids.tid);
        }
        // Counters and tracks have no part in the accounting of time.
        Some(_) => tell(RecordKind::Track, now, ids, mark),
        None => {}
    }
}

/// Takes the begin of a section of which no more is said than its name.
#[inline(always)]
pub fn take_section(now: u64, ids: Ids, thread: &mut Thread, name: *const u8) {
    let Thread { stack, mark, begin: parsed, takes_part, odd, .. } = thread;
    // One without a name, or with one that cannot be read, is a section still: its end will come.
    let len = read(name, None, mark, now, ids.tid).unwrap_or(0);
    mark.len = len as u32;
    let parsed = through_memory(parsed, mark::section(Captured::of(&mark.payload), 0));
    let found = begin(now, ids, stack, mark, parsed, takes_part);
    oddities::count_all(through_memory(odd, found), now, ids.tid);
}

/// Takes the end of the innermost section, of which nothing is said.
#[inline(always)]
pub fn take_end(now: u64, ids: Ids, thread: &mut Thread) {
    let Thread { stack, mark, takes_part, odd, .. } = thread;
    mark.len = 0;
    let found = end(now, ids, stack, *takes_part);
    oddities::count_all(through_memory(odd, found), now, ids.tid);
}

#[inline(always)]
fn end(now: u64, ids: Ids, stack: &mut Stack, takes_part: u32) -> Diagnostics {
    stack.end(now, |_, closed| totals::store(ids, takes_part != 0, closed))
}

#[inline(always)]
fn begin(
    now: u64,
    ids: Ids,
    stack: &mut Stack,
    mark: &mut NameText,
    begin: Begin,
    takes_part: &mut u32,
) -> Diagnostics {
    let (mut label, mut name) = (begin.label, 0);
    let text = Captured::of(&mark.payload);
    if label.is_tagged() {
        *takes_part = 1;
        let read = mark::hashed_name(text, begin.name_at);
        name = read.hash;
        if read.has_attributes || TELL_BEGINS.load() != 0 {
            mark.name_at = u32::from(begin.name_at);
            tell(RecordKind::Said, now, ids, mark);
        }
        know(name, begin, now, ids.tid, mark);
        if let Some(change) = label.app_change() {
            let Ids { tgid, tid } = ids;
            let event = AppEvent { change, begun_by: 0, tgid, tid, time: now, begin: now, name };
            if !app_events::push(&event) {
                ring::emit(BeginRecord::new(tgid, tid, label, name, now), Wake::WhenHalfFull);
            }
        }
    } else if label == Label::FOREIGN && mark::may_be_interface_call(text, begin.name_at) {
        name = mark::name_hash(text, begin.name_at);
        // SAFETY: user space writes an entry once, before it can be found.
        if let Some(meaning) = unsafe { MEANINGS.get(name) } {
            label = meaning.label;
            if meaning.driver != 0 {
                *takes_part = 1;
                app_events::note_driver(ids.tgid);
            }
            if meaning.told != 0 {
                app_events::count_driver_event();
                ring::emit(BeginRecord::new(ids.tgid, ids.tid, label, name, now), Wake::WhenHalfFull);
            }
        } else {
            know(name, begin, now, ids.tid, mark);
            oddities::count_mark(DiagnosticKind::NameNotYetKnown, now, ids.tid);
        }
    }
    let takes_part = *takes_part != 0;
    stack.set_slot(app_events::last());
    stack.begin(now, begin.prefix, label, name, |_, closed| totals::store(ids, takes_part, closed))
}

/// Keeps the text of a name when it is first seen.
#[inline(always)]
fn know(name: u64, begin: Begin, now: u64, tid: u32, mark: &mut NameText) {
    mark.name_at = u32::from(begin.name_at);
    // SAFETY: lookup only; the value is not used.
    if unsafe { NAMES.get(name) }.is_none()
        && NAMES.insert(name, &*mark, u64::from(BPF_NOEXIST)).is_err()
        // Another thread may have been faster; a second look tells that from a full table.
        // SAFETY: lookup only; the value is not used.
        && unsafe { NAMES.get(name) }.is_none()
    {
        oddities::count_mark(DiagnosticKind::TableFull, now, tid);
    }
}

/// Hands on a counter, an instant, an end of an asynchronous slice, or a begin that says more than layer, phase and name.
#[inline(never)]
fn tell(kind: RecordKind, now: u64, ids: Ids, mark: &NameText) {
    ring::emit(
        TrackRecord {
            kind: kind as u32,
            tid: ids.tid,
            tgid: ids.tgid,
            len: mark.len,
            time: now,
            name_at: mark.name_at,
            reserved: 0,
            payload: mark.payload,
        },
        Wake::WhenHalfFull,
    );
}

/// Writes a value to a map and reads it again. The verifier knows exactly what a program computed, and walks
/// through the rest of it once for every value; of memory it knows nothing, and walks once.
#[inline(always)]
fn through_memory<T: Copy>(slot: &mut T, value: T) -> T {
    // SAFETY: a valid reference; volatile, so that the compiler really goes through memory.
    unsafe {
        ptr::write_volatile(slot, value);
        ptr::read_volatile(slot)
    }
}

/// The state of this thread, made at its first mark; `None` when the table is full.
#[inline(always)]
fn thread(tid: u32) -> Option<*mut Thread> {
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        return Some(thread);
    }
    let empty = NEW_THREAD.get(0)?;
    THREADS.insert(tid, empty, u64::from(BPF_ANY)).ok()?;
    THREADS.get_ptr_mut(tid)
}

/// Zeros the payload, eight bytes at a time. As one assignment it would be a call that goes byte by byte. The word behind
/// [`MARK_BYTES`] is zero from [`NEW_THREAD`] on: nobody writes it.
#[inline(always)]
fn clear(mark: &mut NameText) {
    const { assert!(align_of::<NameText>() == 8 && offset_of!(NameText, payload).is_multiple_of(8)) };
    let words: *mut u64 = mark.payload.as_mut_ptr().cast();
    for at in 0..MARK_BYTES / 8 {
        // SAFETY: inside of the payload, whose begin is a multiple of eight; volatile, so that the compiler does not
        // make one assignment of all.
        unsafe { ptr::write_volatile(words.add(at), 0) };
    }
}

/// Reads the payload into `mark`, with zeros behind it; returns its length without the NUL, `None` when it could not be read.
#[inline(always)]
fn read(payload: *const u8, length: Option<u64>, mark: &mut NameText, now: u64, tid: u32) -> Option<usize> {
    // One byte is left for the NUL, with and without a length.
    const ROOM: usize = MARK_BYTES - 1;
    clear(mark);
    if let Some(length) = length {
        // An `int` leaves the upper half of its register undefined.
        let wanted = length as u32 as usize;
        // The mask proves the size to the verifier.
        let len = if wanted > ROOM { ROOM } else { wanted & ROOM };
        if len == 0 {
            return Some(0);
        }
        let room = &mut mark.payload[..len];
        // SAFETY: the helper checks the address.
        if unsafe { bpf_probe_read_user_buf(payload, room) }.is_err() {
            oddities::count(DiagnosticKind::UnreadableMark, now, tid);
            return None;
        }
        if wanted > ROOM {
            mark.len = ROOM as u32;
            oddities::count_mark(DiagnosticKind::TruncatedMark, now, tid);
        }
        return Some(len);
    }
    // SAFETY: the helper checks the address, and writes no more than the size it is given. The checked wrapper
    // would return a slice whose length the verifier cannot follow.
    let read = unsafe {
        bpf_probe_read_user_str(mark.payload.as_mut_ptr().cast(), MARK_BYTES as u32, payload.cast())
    };
    if read < 0 {
        oddities::count(DiagnosticKind::UnreadableMark, now, tid);
        return None;
    }
    // What was read counts the NUL.
    let len = if read > 0 { (read - 1).cast_unsigned() as usize & ROOM } else { 0 };
    if len == ROOM {
        // Full to the brim: the last byte tells whether there was more.
        let mut next = 0_u8;
        // SAFETY: the helper checks the address.
        let more =
            unsafe { bpf_probe_read_user_buf(payload.wrapping_add(ROOM), core::slice::from_mut(&mut next)) };
        if more.is_ok() && next != 0 {
            mark.len = ROOM as u32;
            oddities::count_mark(DiagnosticKind::TruncatedMark, now, tid);
        }
    }
    Some(len)
}
