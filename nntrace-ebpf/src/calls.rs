//! Calls of functions that are recorded with their arguments and results: probes at their begins and at their ends.
//!
//! The cookie of a probe is its number, which user space describes in [`CALL_PROBES`]; at an end it is twice the number, and
//! one more where the instruction is a jump to another function. There is no return probe: an exception that passes one
//! ends the process. What shows that functions were left without a return is as for those of engines.

use aya_ebpf::{
    EbpfContext as _,
    bindings::{BPF_ANY, pt_regs},
    helpers::{bpf_probe_read_user, generated::bpf_get_attach_cookie},
    macros::{raw_tracepoint, uprobe},
    programs::{ProbeContext, RawTracePointContext},
};
use nntrace_common::{
    calls::{
        CALL_BYTES, CALL_HEADER, CallCounts, CallEnd, CallKey, CallRecord, Form, MAX_ITEMS, MAX_REGISTERS,
        Place,
    },
    engine_frames::{EngineEvent, EngineFrame, EngineFrames, MAX_FRAMES},
    record::RecordKind,
    verifier_bounds::{masked, opaque},
};

use crate::{
    atomic::add,
    call_memory::{self, Moment},
    clock,
    engines::{packed, return_address, stack_pointer, unpacked},
    maps::{CALL_COUNTS, CALL_FRAMES, CALL_PROBES, NEW_CALL, NEW_CALL_FRAMES, OPEN_CALLS},
    mark_text::Paging::{self, MayWait, Never},
    ring,
    task_ids::{self, Ids},
    task_stack, traced_processes,
};

/// Bytes between the stack pointer at a function's begin and its arguments on the stack.
const BELOW_ARGUMENTS: u64 = if cfg!(bpf_target_arch = "x86_64") { 8 } else { 0 };

/// Page whose begin stands in the place of a return address while a return probe of anybody waits for the return: the
/// kernel's choice for it on x86-64, the last page but one.
const RETURN_PROBES: u64 = 0x7fff_ffff_e000;

/// Stands for no probe.
const NO_PROBE: u32 = u32::MAX;

/// Handles the begin of a function.
#[uprobe]
pub fn call_begin(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, Never)
}

/// As [`call_begin`], where the kernel lets programs wait for a page.
#[uprobe(sleepable)]
pub fn call_begin_sleepable(ctx: ProbeContext) -> u32 {
    on_begin(&ctx, MayWait)
}

/// Handles the end of a function.
#[uprobe]
pub fn call_end(ctx: ProbeContext) -> u32 {
    on_end(&ctx, Never)
}

/// As [`call_end`], where the kernel lets programs wait for a page.
#[uprobe(sleepable)]
pub fn call_end_sleepable(ctx: ProbeContext) -> u32 {
    on_end(&ctx, MayWait)
}

/// Handles the begin of a handler of exceptions, as [`crate::engines::engine_caught`] does.
#[uprobe]
pub fn call_caught(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(ids) = traced_processes::target()
    {
        // SAFETY: the registers that the program was called with.
        let sp = stack_pointer(unsafe { &*ctx.regs }).wrapping_add(cookie(&ctx));
        close_left(ids, now, EngineEvent::Entry, NO_PROBE, sp);
    }
    0
}

/// Handles the end of a thread, which has left all functions.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn call_thread_end(_: RawTracePointContext) -> i32 {
    leave_all(task_ids::current());
    0
}

/// Handles an exec: the program that was in functions is gone. The thread that runs it may have had another id so far.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn call_exec(ctx: RawTracePointContext) -> i32 {
    let ids = task_ids::current();
    leave_all(ids);
    let former = ctx.arg::<u32>(1);
    if former != ids.tid {
        leave_all(Ids { tid: former, ..ids });
    }
    0
}

#[inline(always)]
fn cookie(ctx: &ProbeContext) -> u64 {
    // SAFETY: the helper takes the context of the program.
    unsafe { bpf_get_attach_cookie(ctx.as_ptr()) }
}

#[inline(always)]
fn on_begin(ctx: &ProbeContext, paging: Paging) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(ids) = traced_processes::target()
        && let number = cookie(ctx) as u32
        && let Some(probe) = CALL_PROBES.get(number)
    {
        // SAFETY: a field of a value of the map.
        count(|counts| unsafe { add(&raw mut (*counts).calls, 1) });
        // SAFETY: the registers that the program was called with.
        let registers = unsafe { &*ctx.regs };
        let sp = stack_pointer(registers).wrapping_add(u64::from(probe.pushed));
        close_left(ids, now, EngineEvent::Entry, number, sp);
        let depth = open(packed(ids), now, sp, number);
        if depth != 0
            && let Some(call) = OPEN_CALLS.get_ptr_mut(CallKey { tid: ids.tid, depth })
        {
            // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
            put_registers(unsafe { &mut *call }, registers);
            take_words(packed(ids), sp, u64::from(depth) << 32 | u64::from(number));
            call_memory::read_all(paging, Moment::Begin, ids, now, depth, number);
        }
    }
    0
}

#[inline(always)]
fn on_end(ctx: &ProbeContext, paging: Paging) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(ids) = traced_processes::target()
    {
        let cookie = cookie(ctx);
        let (number, is_jump) = ((cookie >> 1) as u32, cookie & 1 != 0);
        // SAFETY: the registers that the program was called with.
        let registers = unsafe { &*ctx.regs };
        let sp = stack_pointer(registers);
        close_left(ids, now, EngineEvent::Return, number, sp);
        let depth = ended_depth(ids.tid, sp, number);
        if depth != 0 {
            if !is_jump {
                take_result(packed(ids), result(registers), u64::from(depth) << 32 | u64::from(number));
                call_memory::read_all(paging, Moment::End, ids, now, depth, number);
            }
            let end = if is_jump { CallEnd::Jumped } else { CallEnd::Returned };
            close(packed(ids), now, end as u32);
        }
    }
    0
}

/// Closes all calls of a thread that is not in them any more.
#[inline(always)]
fn leave_all(ids: Ids) {
    // SAFETY: lookup only; the value is not used.
    if unsafe { CALL_FRAMES.get(ids.tid) }.is_none() {
        return;
    }
    if let Some(now) = clock::now_inside() {
        for _ in 0..MAX_FRAMES {
            if close(packed(ids), now, CallEnd::Left as u32) == 0 {
                break;
            }
        }
    }
    let _ = CALL_FRAMES.remove(ids.tid);
}

/// Closes the calls that an event shows as left.
#[inline(always)]
fn close_left(ids: Ids, now: u64, event: EngineEvent, number: u32, sp: u64) {
    let what = u64::from(number) << 1 | u64::from(event == EngineEvent::Return);
    for _ in 0..MAX_FRAMES {
        if is_call_left(ids.tid, sp, what) == 0 {
            break;
        }
        close(packed(ids), now, CallEnd::Left as u32);
    }
}

/// Returns 1 when the innermost call is one that an event shows as left, else 0. The event is in the lowest bit of `what`,
/// the number of its probe above.
///
/// A global function, as those below: the verifier checks each once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_call_left(tid: u32, sp: u64, what: u64) -> u32 {
    let event = if what & 1 == 0 { EngineEvent::Entry } else { EngineEvent::Return };
    let Some(frames) = frames(tid) else { return 0 };
    if frames.left(event, (what >> 1) as u32, sp).is_some() {
        return 1;
    }
    let Some(frame) = frames.perhaps_left(sp) else { return 0 };
    let returns_to = return_address(frame.sp);
    u32::from(returns_to != frame.returns_to && returns_to != RETURN_PROBES)
}

/// Returns how many calls are open, if the innermost one is that of the function that ends at this stack pointer; else 0.
#[inline(always)]
fn ended_depth(tid: u32, sp: u64, number: u32) -> u32 {
    match frames(tid) {
        Some(frames) if frames.returns(number, sp) => {
            frames.innermost().map_or(0, |frame| u32::from(frame.depth))
        }
        _ => 0,
    }
}

/// Opens a call; returns how many are open with it, 0 if there is no room for it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn open(who: u64, now: u64, sp: u64, number: u32) -> u32 {
    let ids = unpacked(who);
    if CALL_FRAMES.get_ptr_mut(ids.tid).is_none()
        && let Some(empty) = NEW_CALL_FRAMES.get(0)
    {
        let _ = CALL_FRAMES.insert(ids.tid, empty, u64::from(BPF_ANY));
    }
    let Some(frames) = frames(ids.tid) else {
        // SAFETY: a field of a value of the map.
        count(|counts| unsafe { add(&raw mut (*counts).no_room, 1) });
        return 0;
    };
    if !frames.has_room() {
        // SAFETY: a field of a value of the map.
        count(|counts| unsafe { add(&raw mut (*counts).too_deep, 1) });
        return 0;
    }
    let depth = frames.innermost().map_or(0, |frame| u32::from(frame.depth)) + 1;
    let key = CallKey { tid: ids.tid, depth };
    let is_made = match NEW_CALL.get(0) {
        Some(empty) => OPEN_CALLS.insert(key, empty, u64::from(BPF_ANY)).is_ok(),
        None => false,
    };
    let call = if is_made { OPEN_CALLS.get_ptr_mut(key) } else { None };
    let Some(call) = call else {
        // SAFETY: a field of a value of the map.
        count(|counts| unsafe { add(&raw mut (*counts).no_room, 1) });
        return 0;
    };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let call = unsafe { &mut *call };
    call.kind = RecordKind::Call as u32;
    call.tid = ids.tid;
    call.tgid = ids.tgid;
    call.probe = number;
    call.begin = now;
    frames.push(EngineFrame {
        sp,
        returns_to: return_address(sp),
        probe: number,
        depth: depth as u8,
        is_bracket: 0,
        ends_unseen: 0,
        reserved: 0,
    });
    depth
}

/// Puts the registers with arguments where texts will be, from where [`take_words`] takes them by number.
#[inline(always)]
fn put_registers(call: &mut CallRecord, registers: &pt_regs) {
    let to: *mut u64 = call.data.as_mut_ptr().cast();
    let mut number = 0;
    #[expect(clippy::explicit_counter_loop, reason = "the verifier sees a loop without an iterator's state")]
    for register in arguments(registers) {
        // SAFETY: inside of the room for texts, which is aligned to eight bytes; volatile, so that each is stored at once.
        unsafe { to.add(number).write_volatile(register) };
        number += 1;
    }
}

/// Takes the words of all arguments. The number of the probe is in the lower half of `what`, that of open calls above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn take_words(who: u64, sp: u64, what: u64) -> u32 {
    let Some(probe) = CALL_PROBES.get(what as u32) else { return 0 };
    let key = CallKey { tid: unpacked(who).tid, depth: (what >> 32) as u32 };
    let Some(call) = OPEN_CALLS.get_ptr_mut(key) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let call = unsafe { &mut *call };
    let registers: *const u64 = call.data.as_ptr().cast();
    for number in 0..MAX_ITEMS {
        if number as u32 >= probe.count {
            break;
        }
        let item = &probe.items[number];
        let place = usize::from(item.number);
        if item.place == Place::Register as u8 {
            // SAFETY: inside of the room for texts.
            call.words[number] = unsafe { registers.add(masked(place, MAX_REGISTERS)).read_volatile() };
        } else if item.place == Place::Stack as u8 {
            let at = sp.wrapping_add(BELOW_ARGUMENTS).wrapping_add(8 * place as u64);
            // SAFETY: the helper checks the address.
            call.words[number] = unsafe { bpf_probe_read_user(at as *const u64) }.unwrap_or(0);
        }
    }
    0
}

/// Takes the result as the word of each item that it is. The number of the probe is in the lower half of `what`, that of open
/// calls above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn take_result(who: u64, result: u64, what: u64) -> u32 {
    let Some(probe) = CALL_PROBES.get(what as u32) else { return 0 };
    let key = CallKey { tid: unpacked(who).tid, depth: (what >> 32) as u32 };
    let Some(call) = OPEN_CALLS.get_ptr_mut(key) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let call = unsafe { &mut *call };
    for number in 0..MAX_ITEMS {
        if number as u32 >= probe.count {
            break;
        }
        if probe.items[number].place == Place::Result as u8 {
            call.words[number] = result;
        }
    }
    0
}

/// Closes the innermost call of a thread, and emits its record; returns 0 when there is none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn close(who: u64, now: u64, end: u32) -> u32 {
    let tid = unpacked(who).tid;
    let Some(frames) = frames(tid) else { return 0 };
    let Some(frame) = frames.innermost() else { return 0 };
    frames.pop_closed(frame.depth.wrapping_sub(1));
    let key = CallKey { tid, depth: u32::from(frame.depth) };
    let Some(call) = OPEN_CALLS.get_ptr_mut(key) else { return 1 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let record = unsafe { &mut *call };
    record.end = now;
    record.ended = end;
    let len = masked(record.len as usize, 2 * CALL_BYTES);
    // SAFETY: the header and less than all of the room for texts, all of it initialized when the entry was made.
    let bytes = unsafe { core::slice::from_raw_parts(call.cast::<u8>(), opaque(CALL_HEADER + len)) };
    if !ring::emit_bytes(bytes) {
        // SAFETY: a field of a value of the map.
        count(|counts| unsafe { add(&raw mut (*counts).dropped, 1) });
    }
    let _ = OPEN_CALLS.remove(key);
    1
}

#[inline(always)]
fn frames<'a>(tid: u32) -> Option<&'a mut EngineFrames> {
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    CALL_FRAMES.get_ptr_mut(tid).map(|frames| unsafe { &mut *frames })
}

/// Passes the counters of this CPU to `count`. Programs that preempt each other add to the same ones, hence atomic.
#[inline(always)]
fn count(count: impl FnOnce(*mut CallCounts)) {
    if let Some(counts) = CALL_COUNTS.get_ptr_mut(0) {
        count(counts);
    }
}

/// Whether an item is in memory.
#[inline(always)]
pub fn is_in_memory(form: u8) -> bool {
    form != Form::Word as u8
}

#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn arguments(registers: &pt_regs) -> [u64; 6] {
    let pt_regs { rdi, rsi, rdx, rcx, r8, r9, .. } = *registers;
    [rdi, rsi, rdx, rcx, r8, r9]
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn arguments(registers: &pt_regs) -> [u64; 8] {
    let [x0, x1, x2, x3, x4, x5, x6, x7, ..] = registers.regs;
    [x0, x1, x2, x3, x4, x5, x6, x7]
}

#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn result(registers: &pt_regs) -> u64 {
    registers.rax
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn result(registers: &pt_regs) -> u64 {
    registers.regs[0]
}
