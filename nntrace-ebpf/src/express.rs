//! Threads with a lane ([`nntrace_common::express`]), whose marks user space accounts: the hand-over, and the forwarding of marks
//! that still come by a probe.
//!
//! The stack of such a thread stays here with the sections that were begun by a probe: the functions of engines, and the
//! application's phases, which are numbered here.

use core::ptr;

use aya_ebpf::{helpers::generated::bpf_probe_read_kernel, macros::uprobe, programs::ProbeContext};
use nntrace_common::{
    express::DOORBELL,
    mark::{Label, Prefix},
    record::{
        ForwardedRecord, Forwarding, HandoverRecord, LaneRecord, NameText, RecordKind, Thread, TrackRecord,
    },
    section_begin::ParsedBegin,
    stack::Stack,
};

use crate::{
    app_events,
    atomic::add,
    clock, event_counts,
    maps::LANES,
    ring::{self, Wake},
    section_totals,
    thread::writer,
    traced_processes::Ids,
};

/// Index in [`LANES`] of the number of threads that user space accounts at most.
const ROOM: u32 = 0;
/// Index in [`LANES`] of the number of such threads.
const USED: u32 = 1;

/// Takes the offer of a lane, or its doorbell: `f(int64_t file, uint64_t key)`.
#[uprobe]
pub fn lane_offer(ctx: ProbeContext) -> u32 {
    let (Some(file), Some(key)) = (ctx.arg::<i64>(0), ctx.arg::<u64>(1)) else { return 0 };
    if let Some(now) = clock::now_inside()
        && let Some((ids, thread)) = writer(now)
        && (thread.express.is_on() || (file != DOORBELL && hand_over(now, ids, thread)))
    {
        let Ids { tgid, tid } = ids;
        let kind = RecordKind::Lane as u32;
        ring::emit(LaneRecord { kind, tid, tgid, reserved: 0, time: now, file, key }, Wake::Now);
    }
    0
}

/// Hands the accounting of a thread over to user space; `false` where there is no room for it.
#[inline(always)]
fn hand_over(now: u64, ids: Ids, thread: &mut Thread) -> bool {
    let (Some(&room), Some(used)) = (LANES.get(ROOM), LANES.get_ptr_mut(USED)) else { return false };
    // SAFETY: the pointer comes from the map and is not null; a slightly old count moves the bound a little.
    if unsafe { *used } >= room {
        return false;
    }
    let Thread { stack, is_marked, .. } = thread;
    let is_marked = *is_marked;
    let stack = ptr::from_ref(stack);
    let is_emitted = ring::emit_in_place(
        |record: *mut HandoverRecord| {
            // SAFETY: the record is in the ring, and as large as its type.
            unsafe {
                (*record).kind = RecordKind::Handover as u32;
                (*record).tid = ids.tid;
                (*record).tgid = ids.tgid;
                (*record).is_marked = is_marked;
                (*record).time = now;
                // A copy by the compiler would be a loop over bytes.
                bpf_probe_read_kernel(
                    (&raw mut (*record).stack).cast(),
                    size_of::<Stack>() as u32,
                    stack.cast(),
                );
            }
        },
        Wake::Now,
    );
    if is_emitted {
        thread.express.start();
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(used, 1) };
    }
    is_emitted
}

/// Frees the place of a thread that ends.
#[inline(always)]
pub fn ended(thread: &Thread) {
    if thread.express.is_on()
        && let Some(used) = LANES.get_ptr_mut(USED)
    {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(used, 1_u64.wrapping_neg()) };
    }
}

/// Forwards the begin of a section, which is on the thread's stack from here on as well.
#[inline(always)]
pub fn begin(now: u64, ids: Ids, stack: &mut Stack, begin: ParsedBegin, express: &mut Forwarding) {
    let ParsedBegin { prefix, label, name, is_marked, nests_anywhere, .. } = begin;
    let record = ForwardedRecord {
        kind: RecordKind::ForwardedBegin as u32,
        tid: ids.tid,
        tgid: ids.tgid,
        number: express.number(),
        time: now,
        name,
        label,
        prefix: prefix.code(),
        is_marked: u8::from(is_marked),
        nests_anywhere: u8::from(nests_anywhere),
        reserved: [0; 4],
    };
    note(express, ring::emit(record, Wake::WhenHalfFull), now);
    push(now, stack, begin);
}

/// Forwards the text of a mark; see [`TrackRecord`].
#[inline(always)]
pub fn text(now: u64, ids: Ids, mark: &NameText, express: &mut Forwarding) {
    let number = express.number();
    note(express, forward_text(now, &ids, mark, number), now);
}

#[inline(never)]
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "by value these are two arguments, and a function takes five"
)]
fn forward_text(now: u64, ids: &Ids, mark: &NameText, number: u32) -> bool {
    ring::emit(
        TrackRecord {
            kind: RecordKind::ForwardedText as u32,
            tid: ids.tid,
            tgid: ids.tgid,
            len: mark.len,
            time: now,
            name_at: mark.name_at,
            depth: number,
            payload: mark.payload,
        },
        Wake::WhenHalfFull,
    )
}

/// Adds a section to the sections that were begun by a probe. Another one may be around it that was not, so it takes
/// nothing's place, and only its end matters.
#[inline(always)]
pub fn push(now: u64, stack: &mut Stack, begin: ParsedBegin) {
    stack.set_slot(app_events::last());
    stack.begin(now, Prefix::None, begin.label, begin.name, |_, _| {});
}

/// Forwards the end of a section that was begun by a probe.
#[inline(always)]
pub fn end(now: u64, ids: Ids, stack: &mut Stack, express: &mut Forwarding) {
    let record = ForwardedRecord {
        kind: RecordKind::ForwardedEnd as u32,
        tid: ids.tid,
        tgid: ids.tgid,
        number: express.number(),
        time: now,
        name: 0,
        label: Label::FOREIGN,
        prefix: 0,
        is_marked: 0,
        nests_anywhere: 0,
        reserved: [0; 4],
    };
    note(express, ring::emit(record, Wake::WhenHalfFull), now);
    stack.end(now, |_, closed| section_totals::end_phase(ids, closed));
}

/// Notes whether a forwarded record is in a ring.
#[inline(always)]
fn note(express: &mut Forwarding, is_emitted: bool, now: u64) {
    express.note(is_emitted, now);
    if !is_emitted {
        event_counts::forward_lost();
    }
}
