//! Marks: uprobes on `tracing_mark_write`, one program per argument layout.

use core::ptr;

use aya_ebpf::{bindings::BPF_NOEXIST, macros::uprobe, programs::ProbeContext};
use nntrace_common::{
    diagnostic::{DiagnosticKind, Diagnostics},
    event_counts::Table,
    mark::{self, Begin, Captured, Kind, Label, Prefix},
    nested_functions::FunctionKind,
    record::{BeginRecord, Forwarding, KNOWN_NAMES, NameText, RecordKind, Thread, TrackRecord},
    section_begin::{BeginName, ParsedBegin},
    stack::{Closed, Stack},
};

use crate::{
    app_events, clock, diagnostics, event_counts, express,
    maps::{EMIT_BEGINS, MEANINGS, NAMES},
    mark_text::{self, Paging},
    nested_functions, perf_counters,
    ring::{self, Wake},
    section_totals, taking_part,
    task_ids::Ids,
    task_stack,
    thread::writer,
};

/// Takes a mark of `f(const char *payload)`.
#[uprobe]
pub fn mark_buf(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, Paging::Never, ctx.arg(0), None)
}

/// Takes a mark of `f(const char *payload, size_t length)`.
#[uprobe]
pub fn mark_buf_len(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, Paging::Never, ctx.arg(0), ctx.arg(1))
}

/// Takes a mark of a method `f(this, const char *payload)`.
#[uprobe]
pub fn mark_this_buf(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, Paging::Never, ctx.arg(1), None)
}

/// Takes a mark of a method `f(this, const char *payload, size_t length)`.
#[uprobe]
pub fn mark_this_buf_len(ctx: ProbeContext) -> u32 {
    on_mark(&ctx, Paging::Never, ctx.arg(1), ctx.arg(2))
}

/// Handles the call of a mark function.
#[inline(always)]
pub fn on_mark(ctx: &ProbeContext, paging: Paging, payload: Option<*const u8>, length: Option<u64>) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(payload) = payload
        && let Some((ids, thread)) = writer(now)
        && nested_functions::enter(ctx, FunctionKind::Mark)
    {
        take(paging, now, ids, thread, payload, length);
    }
    0
}

/// Takes a mark in the form of `tracing_mark_write`.
#[inline(always)]
pub fn take(
    paging: Paging,
    now: u64,
    ids: Ids,
    thread: &mut Thread,
    payload: *const u8,
    length: Option<u64>,
) {
    event_counts::mark();
    perf_counters::charge(paging, ids, &thread.stack, &thread.express);
    if length.is_none() && mark_text::is_end(payload) {
        end_by_mark(now, ids, thread, Some(payload));
        return;
    }
    let mark = &mut thread.mark;
    let Some(len) = mark_text::read(paging, payload, length, mark, now, ids) else { return };
    if through_memory(&mut mark.len, len as u32) == 0 {
        diagnostics::count(DiagnosticKind::EmptyMark, now, ids.tid);
        return;
    }
    let text = Captured::of(&mark.payload);
    match mark::kind(text) {
        Some(Kind::Begin) => {
            let parsed = mark::begin(text);
            begin(now, ids, thread, parsed);
        }
        Some(Kind::End) => end_by_mark(now, ids, thread, None),
        Some(_) if thread.express.is_on() => express::text(now, ids, &thread.mark, &mut thread.express),
        // Counters and tracks are not part of the accounting of time.
        Some(_) => emit_payload(RecordKind::Track, now, &ids, &thread.mark, thread.stack.innermost()),
        None => {}
    }
}

/// Takes the begin of a section from its name alone.
#[inline(always)]
pub fn take_section(paging: Paging, now: u64, ids: Ids, thread: &mut Thread, name: *const u8) {
    event_counts::mark();
    perf_counters::charge(paging, ids, &thread.stack, &thread.express);
    let mark = &mut thread.mark;
    // Without a name, or with one that cannot be read, it is still a section: its end will come.
    let len = mark_text::read(paging, name, None, mark, now, ids).unwrap_or(0);
    mark.len = len as u32;
    let parsed = mark::section(Captured::of(&mark.payload), 0);
    begin(now, ids, thread, parsed);
}

/// Takes the end of the innermost section, from a function without arguments.
#[inline(always)]
pub fn take_end(now: u64, ids: Ids, thread: &mut Thread) {
    event_counts::mark();
    perf_counters::charge(Paging::Never, ids, &thread.stack, &thread.express);
    thread.mark.len = 0;
    end_by_mark(now, ids, thread, None);
}

/// Ends the innermost section by a mark, whose text may not have been read yet. The section of an engine's function is ended by
/// that function alone.
#[inline(always)]
fn end_by_mark(now: u64, ids: Ids, thread: &mut Thread, unread: Option<*const u8>) {
    let Thread { stack, mark, is_marked, odd, engines, express, .. } = thread;
    let found = if engines.owns(stack.depth()) {
        let mut found = Diagnostics::NONE;
        found.add(DiagnosticKind::UnmatchedEnd);
        found
    } else {
        end(now, ids, stack, *is_marked, express)
    };
    let odd = through_memory(odd, found);
    if let Some(text) = unread
        && !odd.is_empty()
    {
        mark_text::read_example(text, mark);
    }
    diagnostics::count_all(odd, now, ids.tid);
}

/// Ends the innermost section.
#[inline(always)]
pub fn end(now: u64, ids: Ids, stack: &mut Stack, is_marked: u32, express: &mut Forwarding) -> Diagnostics {
    if express.is_on() {
        express::end(now, ids, stack, express);
        return Diagnostics::NONE;
    }
    stack.end(now, |_, closed| close(ids, is_marked != 0, closed))
}

/// Stores a section that ended.
#[inline(always)]
fn close(ids: Ids, is_marked: bool, closed: &Closed) {
    section_totals::store(ids, is_marked, closed);
    perf_counters::close(ids, is_marked, closed);
}

/// Begins a section by the mark in the thread's buffer.
#[inline(always)]
fn begin(now: u64, ids: Ids, thread: &mut Thread, parsed: Begin) {
    let Thread { stack, mark, begin, is_marked, odd, has_calls, engines, express, known_names, .. } = thread;
    let parsed = through_memory(begin, parsed);
    let text = Captured::of(&mark.payload);
    let (begin, needs_text) = match BeginName::read(text, parsed) {
        BeginName::Tagged(name) => {
            let begin = ParsedBegin::tagged(parsed, name);
            know(begin, now, ids.tid, mark, known_names);
            (begin, begin.has_attributes || EMIT_BEGINS.load() != 0)
        }
        BeginName::Call(name) => {
            // SAFETY: user space writes an entry once, before it can be found.
            if let Some(&meaning) = unsafe { MEANINGS.get(name) } {
                let begin = ParsedBegin::call(parsed, name, meaning);
                *has_calls = 1;
                if begin.is_marked {
                    app_events::note_driver(ids.tgid);
                }
                (begin, begin.label.is_tagged() && EMIT_BEGINS.load() != 0)
            } else {
                let begin = ParsedBegin { name, ..ParsedBegin::foreign(parsed) };
                know(begin, now, ids.tid, mark, known_names);
                diagnostics::count_mark(DiagnosticKind::NameNotYetKnown, now, ids.tid);
                (begin, false)
            }
        }
        // By the text of an unknown tag its error is found.
        BeginName::Foreign => {
            (ParsedBegin::foreign(parsed), express.is_on() && parsed.label == Label::UNKNOWN)
        }
    };
    // A switch cannot take the place of a function.
    let prefix = if matches!(begin.prefix, Prefix::Switch) && engines.owns(stack.depth()) {
        Prefix::None
    } else {
        begin.prefix
    };
    if needs_text {
        mark.name_at = u32::from(begin.name_at);
        if express.is_on() {
            prepare(now, ids, begin, is_marked);
            express::text(now, ids, mark, express);
            express::push(now, stack, begin);
            return;
        }
        emit_annotated(now, ids, stack, mark, begin);
    }
    let found = open(now, ids, stack, ParsedBegin { prefix, ..begin }, is_marked, express);
    diagnostics::count_all(through_memory(odd, found), now, ids.tid);
}

/// Does what a begin means beyond the thread's stack.
#[inline(always)]
fn prepare(now: u64, ids: Ids, begin: ParsedBegin, is_marked: &mut u32) {
    if begin.is_marked && *is_marked == 0 {
        *is_marked = 1;
        taking_part::begins(now);
    }
    if begin.is_reported {
        report(ids, begin, now);
    }
}

/// Opens a section.
#[inline(always)]
pub fn open(
    now: u64,
    ids: Ids,
    stack: &mut Stack,
    begin: ParsedBegin,
    is_marked: &mut u32,
    express: &mut Forwarding,
) -> Diagnostics {
    prepare(now, ids, begin, is_marked);
    if express.is_on() {
        express::begin(now, ids, stack, begin, express);
        return Diagnostics::NONE;
    }
    let is_marked = *is_marked != 0;
    stack.set_slot(app_events::last());
    stack.begin(now, begin.prefix, begin.label, begin.name, |_, closed| close(ids, is_marked, closed))
}

/// Reports a begin that matters beyond its thread: in the table of changes or, if it is none of these or there is no
/// room, by a record.
#[inline(always)]
fn report(ids: Ids, begin: ParsedBegin, now: u64) {
    let ParsedBegin { label, name, .. } = begin;
    let is_kept = if let Some(change) = label.app_change() {
        app_events::begins(ids, change, now, name)
    } else {
        app_events::count_driver_event();
        false
    };
    if !is_kept {
        report_begin(ids, label, name, now);
    }
}

/// Emits a begin that matters beyond its thread.
#[inline(never)]
fn report_begin(ids: Ids, label: Label, name: u64, now: u64) {
    ring::emit(BeginRecord::new(ids.tgid, ids.tid, label, name, now), Wake::WhenHalfFull);
}

/// Stores the text of a name when it is first seen. The thread remembers it among its `known` names.
#[inline(always)]
pub fn know(begin: ParsedBegin, now: u64, tid: u32, mark: &mut NameText, known: &mut [u64; KNOWN_NAMES]) {
    let ParsedBegin { name, name_at, .. } = begin;
    let place = &mut known[name as usize & (KNOWN_NAMES - 1)];
    if *place == name {
        return;
    }
    mark.name_at = u32::from(name_at);
    // SAFETY: lookup only; the value is not used.
    if unsafe { NAMES.get(name) }.is_none()
        && NAMES.insert(name, &*mark, u64::from(BPF_NOEXIST)).is_err()
        // Another thread may have been faster; a second look distinguishes that from a full table.
        // SAFETY: lookup only; the value is not used.
        && unsafe { NAMES.get(name) }.is_none()
    {
        event_counts::turned_away(Table::Names);
        diagnostics::count_mark(DiagnosticKind::TableFull, now, tid);
        return;
    }
    *place = name;
}

/// Emits the begin of a section with a layer and a phase, unless there is no room for the section: its end will not
/// be seen.
#[inline(always)]
fn emit_annotated(now: u64, ids: Ids, stack: &Stack, mark: &NameText, begin: ParsedBegin) {
    if let Some(depth) = stack.depth_of_next(begin.prefix) {
        emit_payload(RecordKind::AnnotatedBegin, now, &ids, mark, depth);
    }
}

/// Emits a counter, an instant, an end of an asynchronous slice, or a begin with more than layer, phase and name.
#[inline(never)]
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "by value these are two arguments, and a function takes five"
)]
pub fn emit_payload(kind: RecordKind, now: u64, ids: &Ids, mark: &NameText, depth: u8) {
    ring::emit(
        TrackRecord {
            kind: kind as u32,
            tid: ids.tid,
            tgid: ids.tgid,
            len: mark.len,
            time: now,
            name_at: mark.name_at,
            depth: u32::from(depth),
            payload: mark.payload,
        },
        Wake::WhenHalfFull,
    );
}

/// Writes a value to a map and reads it again. The verifier tracks the exact values that a program computed, and
/// walks through the rest of it once for each; about memory it knows nothing, and walks once.
#[inline(always)]
fn through_memory<T: Copy>(slot: &mut T, value: T) -> T {
    // SAFETY: a valid reference; volatile, so that the compiler really goes through memory.
    unsafe {
        ptr::write_volatile(slot, value);
        ptr::read_volatile(slot)
    }
}
