//! Threads with a lane ([`nntrace_common::express`]), whose marks user space accounts: the hand-over, and the forwarding of marks
//! that still come by a probe.
//!
//! The stack of such a thread stays here with the sections that were begun by a probe: the functions of engines, and the
//! application's phases, which are numbered here.

use core::ptr;

use aya_ebpf::{
    bindings::BPF_ANY, helpers::generated::bpf_probe_read_kernel, macros::uprobe, programs::ProbeContext,
};
use nntrace_common::{
    diagnostic::HeldDiagnostics,
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
    maps::{ENDED_LOSING, LANES},
    ring::{self, Wake},
    section_totals,
    task_ids::Ids,
    thread::writer,
};

/// Index in [`LANES`] of the number of threads that user space accounts at most.
const ROOM: u32 = 0;
/// Index in [`LANES`] of the number of such threads.
const USED: u32 = 1;

/// Takes the offer of a lane, its doorbell, or what hooks have left out: `f(int64_t file, uint64_t key)`.
#[uprobe]
pub fn lane_offer(ctx: ProbeContext) -> u32 {
    let (Some(file), Some(key)) = (ctx.arg::<i64>(0), ctx.arg::<u64>(1)) else { return 0 };
    if let Some(now) = clock::now_inside()
        && let Some((ids, thread)) = writer(now)
        && (thread.express.is_on() || file < DOORBELL || (file != DOORBELL && hand_over(now, ids, thread)))
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
    let Thread { stack, is_marked, held, .. } = thread;
    let (is_marked, held) = (*is_marked, ptr::from_ref(held));
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
                // Aligned, and so copied in words.
                (*record).held = *held;
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
        // Of a former thread of this id.
        let _ = ENDED_LOSING.remove(ids.tid);
        thread.express.start();
        thread.held = HeldDiagnostics::NONE;
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(used, 1) };
    }
    is_emitted
}

/// Frees the place of a thread that ends.
#[inline(always)]
pub fn ended(ids: Ids, thread: &Thread) {
    let express = &thread.express;
    if express.is_on()
        && let Some(used) = LANES.get_ptr_mut(USED)
    {
        if express.is_losing != 0 && !forward_loss(express, &ids) {
            let _ = ENDED_LOSING.insert(ids.tid, express, u64::from(BPF_ANY));
        }
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(used, 1_u64.wrapping_neg()) };
    }
}

/// Forwards the begin of a section, which is on the thread's stack from here on as well.
#[inline(always)]
pub fn begin(now: u64, ids: Ids, stack: &mut Stack, begin: ParsedBegin, express: &mut Forwarding) {
    let ParsedBegin { prefix, label, name, is_marked, nests_anywhere, .. } = begin;
    forward(express, ids, now, |number| {
        let record = || ForwardedRecord {
            kind: RecordKind::ForwardedBegin as u32,
            tid: ids.tid,
            tgid: ids.tgid,
            number,
            time: now,
            name,
            label,
            prefix: prefix.code(),
            is_marked: u8::from(is_marked),
            nests_anywhere: u8::from(nests_anywhere),
            reserved: [0; 4],
        };
        ring::emit_with(record, Wake::WhenHalfFull)
    });
    push(now, stack, begin);
}

/// Forwards the text of a mark; see [`TrackRecord`].
#[inline(always)]
pub fn text(now: u64, ids: Ids, mark: &NameText, express: &mut Forwarding) {
    forward(express, ids, now, |number| forward_text(now, &ids, mark, number));
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
    forward(express, ids, now, |number| {
        let record = || ForwardedRecord {
            kind: RecordKind::ForwardedEnd as u32,
            tid: ids.tid,
            tgid: ids.tgid,
            number,
            time: now,
            name: 0,
            label: Label::FOREIGN,
            prefix: 0,
            is_marked: 0,
            nests_anywhere: 0,
            reserved: [0; 4],
        };
        ring::emit_with(record, Wake::WhenHalfFull)
    });
    stack.end(now, |_, closed| section_totals::end_phase(ids, closed));
}

/// Puts the next record in a ring, after that of the loss before it, if there is one; else it is lost as well. The count is
/// raised last: whoever has read it finds the rest.
#[inline(always)]
fn forward(express: &mut Forwarding, ids: Ids, now: u64, emit: impl FnOnce(u32) -> bool) {
    let number = express.number();
    if express.is_losing != 0 && forward_loss(express, &ids) {
        express.is_losing = 0;
    }
    if express.is_losing == 0 && emit(number) {
        return;
    }
    express.note_lost(number, now);
    event_counts::forward_lost();
}

/// Forwards the loss of records; `false` if there is no room for that either. Written in the ring: it is called from where
/// programs have little left of their stack.
#[inline(never)]
fn forward_loss(express: &Forwarding, ids: &Ids) -> bool {
    ring::emit_in_place(
        |record: *mut ForwardedRecord| {
            // SAFETY: the record is in the ring, and as large as its type.
            unsafe {
                (*record).kind = RecordKind::ForwardedLoss as u32;
                (*record).tid = ids.tid;
                (*record).tgid = ids.tgid;
                (*record).number = express.lost.first;
                (*record).time = express.lost_from;
                (*record).name = u64::from(express.lost.count);
                (*record).label = Label::FOREIGN;
                (*record).prefix = 0;
                (*record).is_marked = 0;
                (*record).nests_anywhere = 0;
                (*record).reserved = [0; 4];
            }
        },
        Wake::WhenHalfFull,
    )
}
