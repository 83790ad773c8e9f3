//! Functions of engines as sections: probes at their begins and at their returns.
//!
//! Every probe has its number as cookie, by which user space describes it in [`ENGINE_PROBES`]. What shows that functions
//! were left without a return has none: that an exception was caught, and that a thread ends.

use aya_ebpf::{
    EbpfContext as _,
    bindings::pt_regs,
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_get_attach_cookie, bpf_get_current_task_btf, bpf_task_pt_regs},
    },
    macros::{raw_tracepoint, uprobe, uretprobe},
    programs::{ProbeContext, RawTracePointContext, RetProbeContext},
};
use nntrace_common::{
    diagnostic::{DiagnosticKind, Diagnostics},
    driver_calls::DRIVER_CALL,
    engine::{Action, NameForm},
    engine_frames::{EngineEvent, EngineFrame},
    mark::{Label, Prefix},
    record::{RecordKind, Thread},
    section_begin::ParsedBegin,
    stack::MAX_DEPTH,
};

use crate::{
    async_runs, clock, diagnostics, engine_names, event_counts,
    maps::{EMIT_BEGINS, ENGINE_PROBES, NAMES, THREADS},
    mark_text::Paging,
    marks, perf_counters, system_calls,
    task_ids::Ids,
    task_stack,
    thread::{self, writer},
    traced_processes,
};

/// Bytes that a return has taken from the stack when its return probe runs.
const RETURN_ADDRESS: u64 = if cfg!(bpf_target_arch = "x86_64") { 8 } else { 0 };

/// Place of a label in what a section is begun with.
const LABEL_SHIFT: u32 = 32;

/// Stands for no probe.
const NO_PROBE: u32 = u32::MAX;

/// Answer for a section whose function starts or awaits an asynchronous execution.
const IS_OF_RUN: u32 = 2;

/// Handles the begin of a function.
#[uprobe]
pub fn engine_begin(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some((ids, _)) = writer(now)
        // SAFETY: the helper takes the context of the program.
        && let number = (unsafe { bpf_get_attach_cookie(ctx.as_ptr()) }) as u32
        && let Some(probe) = ENGINE_PROBES.get(number)
    {
        event_counts::mark();
        event_counts::call();
        // SAFETY: the registers that the program was called with.
        let registers = unsafe { &*ctx.regs };
        let sp = stack_pointer(registers).wrapping_add(u64::from(probe.pushed));
        close_left(ids, now, EngineEvent::Entry, number, sp);
        if probe.action == Action::BracketEnd {
            close_bracket(ids, now, probe.begun_by);
            return 0;
        }
        let object = match probe.action {
            Action::AsyncBegin | Action::AsyncEnd => {
                engine_names::argument(registers, probe.object as u8).unwrap_or(0)
            }
            _ => 0,
        };
        if let Some(thread) = thread::state(now, ids) {
            let own = engine_names::read(registers, sp, number, probe, &mut thread.mark);
            if own.is_none() && probe.recipe.form != NameForm::None as u8 {
                event_counts::unnamed();
            }
            let name = own.unwrap_or(probe.name);
            if begin(ids, now, sp, number, probe.label, own.is_some(), name)
                && object != 0
                && thread.stack.is_call_of_its_own()
            {
                thread.engines.set_object(object, now);
            }
        }
    }
    0
}

/// Handles a return instruction of a function.
#[uprobe]
pub fn engine_return(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    // SAFETY: the registers that the program was called with.
    let sp = stack_pointer(unsafe { &*ctx.regs });
    // SAFETY: the helper takes the context of the program.
    on_return(sp, unsafe { bpf_get_attach_cookie(ctx.as_ptr()) } as u32)
}

/// Handles the return of a function that no exception passes through, after it.
#[uretprobe]
pub fn engine_returned(ctx: RetProbeContext) -> u32 {
    task_stack::keep_frames();
    // SAFETY: the registers that the program was called with.
    let sp = stack_pointer(unsafe { &*ctx.regs }).wrapping_sub(RETURN_ADDRESS);
    // SAFETY: the helper takes the context of the program.
    on_return(sp, unsafe { bpf_get_attach_cookie(ctx.as_ptr()) } as u32)
}

/// Handles the begin of a handler of exceptions, by the function of the C++ runtime that each calls first, from the frame
/// of the function that catches: those below have been left. The cookie is what it has pushed on the stack before.
#[uprobe]
pub fn engine_caught(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    if let Some(now) = clock::now_inside()
        && let Some(ids) = traced_processes::target()
    {
        // SAFETY: the helper takes the context of the program.
        let pushed = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
        // SAFETY: the registers that the program was called with.
        let sp = stack_pointer(unsafe { &*ctx.regs }).wrapping_add(pushed);
        close_left(ids, now, EngineEvent::Entry, NO_PROBE, sp);
    }
    0
}

/// Handles the end of a thread: it has left the functions that are below where it was last. It is attached before the
/// program that forgets the thread.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn engine_thread_end(_: RawTracePointContext) -> i32 {
    if let Some(now) = clock::now_inside()
        && let Some(ids) = traced_processes::target()
    {
        // SAFETY: the helpers take the current task, which has registers: it is one of a process.
        let registers = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) };
        if let Ok(sp) = system_calls::stack_pointer(registers.cast_unsigned()) {
            close_left(ids, now, EngineEvent::Entry, NO_PROBE, sp);
        }
    }
    0
}

#[inline(always)]
fn on_return(sp: u64, number: u32) -> u32 {
    if let Some(now) = clock::now_inside()
        && let Some((ids, _)) = writer(now)
    {
        event_counts::mark();
        close_left(ids, now, EngineEvent::Return, number, sp);
        end(ids, now, sp, number);
    }
    0
}

/// Begins the section of a probe; returns whether there was room. The text of a name of its own is in the thread's
/// buffer.
#[inline(always)]
pub fn begin(ids: Ids, now: u64, sp: u64, number: u32, label: Label, has_own_name: bool, name: u64) -> bool {
    // Where the section begins, the stack has no room for this.
    let label = if label.is_of_runtime() {
        label_here(packed(ids), u32::from(label.byte()))
    } else {
        u32::from(label.byte())
    };
    let label = u64::from(label);
    let what = label << LABEL_SHIFT | u64::from(number) << 1 | u64::from(has_own_name);
    begin_section(packed(ids), now, sp, what, name) != 0
}

/// Ends the section of a probe that returns at this stack pointer, with what is open in it; without one, does nothing.
#[inline(always)]
pub fn end(ids: Ids, now: u64, sp: u64, number: u32) {
    for _ in 0..MAX_DEPTH {
        match is_returned(packed(ids), sp, number) {
            0 => break,
            IS_OF_RUN => _ = async_runs::call_ends(packed(ids), now, 1),
            _ => {}
        }
        close_section(packed(ids), now);
    }
}

/// Returns the layer and phase of a function of the runtime that begins now, as the byte of a [`Label`]. The map has the
/// second argument.
///
/// A global function, as those below: the verifier checks each once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn label_here(who: u64, in_map: u32) -> u32 {
    let Some(label) = Label::from_byte(in_map as u8) else { return in_map };
    let Some(thread) = THREADS.get_ptr_mut(unpacked(who).tid) else { return in_map };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { stack, .. } = unsafe { &*thread };
    u32::from(stack.label_of_engine(label).byte())
}

/// Begins the section of a function, which has its own name if the lowest bit of `what` is set; the number of its probe
/// is above, and its [label](label_here) in the upper half. Returns 0 when the stack is full.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn begin_section(who: u64, now: u64, sp: u64, what: u64, name: u64) -> u32 {
    let (ids, number) = (unpacked(who), (what as u32) >> 1);
    let label = Label::from_byte((what >> LABEL_SHIFT) as u8).unwrap_or(Label::FOREIGN);
    let Some(probe) = ENGINE_PROBES.get(number) else { return 0 };
    let Some(thread) = THREADS.get_ptr_mut(ids.tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { stack, mark, is_marked, odd, engines, express, known_names, .. } = unsafe { &mut *thread };
    // A function without a section around its parts would leave these to others.
    if !engines.has_room() || stack.depth_of_next(Prefix::None).is_none() {
        diagnostics::count(DiagnosticKind::DepthOverflow, now, ids.tid);
        return 0;
    }
    // An operator that an engine runs while it prepares a model is a part of that; a driver's call is the driver's.
    if number != DRIVER_CALL && engines.owns(stack.depth()) && stack.computes_constants(label) {
        return 0;
    }
    // A function takes no other section's place, and so the code that ends one is left out here.
    let prefix = match probe.prefix {
        Prefix::Subtract => Prefix::Subtract,
        Prefix::Handed => Prefix::Handed,
        Prefix::Part => Prefix::Part,
        Prefix::None | Prefix::Switch => Prefix::None,
    };
    let begin = ParsedBegin::function(prefix, label, name);
    if what & 1 != 0 {
        marks::know(begin, now, ids.tid, mark, known_names);
    }
    if EMIT_BEGINS.load() != 0
        && !express.is_on()
        // SAFETY: user space and the programs write an entry once.
        && let Some(text) = unsafe { NAMES.get(name) }
    {
        marks::emit_payload(RecordKind::AnnotatedBegin, now, &ids, text, stack.depth());
    }
    perf_counters::charge(Paging::Never, ids, stack, express);
    *odd = marks::open(now, ids, stack, begin, is_marked, express);
    let returns_to = if probe.ends_unseen != 0 { return_address(sp) } else { 0 };
    engines.push(EngineFrame {
        sp,
        returns_to,
        probe: number,
        depth: stack.depth(),
        is_bracket: u8::from(probe.action == Action::BracketBegin),
        ends_unseen: probe.ends_unseen,
        reserved: 0,
    });
    if !begin.nests_anywhere {
        diagnostics::count_all(*odd, now, ids.tid);
    }
    1
}

/// Closes the sections of the functions that an event shows as left.
#[inline(always)]
fn close_left(ids: Ids, now: u64, event: EngineEvent, number: u32, sp: u64) {
    let what = u64::from(number) << 1 | u64::from(event == EngineEvent::Return);
    for _ in 0..MAX_DEPTH {
        match is_left(packed(ids), now, sp, what) {
            0 => break,
            IS_OF_RUN => _ = async_runs::call_ends(packed(ids), now, 0),
            _ => {}
        }
        close_section(packed(ids), now);
    }
}

/// Closes an open bracket, and what is open in it.
#[inline(always)]
fn close_bracket(ids: Ids, now: u64, begun_by: u32) {
    for _ in 0..MAX_DEPTH {
        if is_in_bracket(packed(ids), begun_by) == 0 {
            break;
        }
        close_section(packed(ids), now);
    }
}

/// Returns 1 when the innermost section is of a function that an event shows as left, or in one, [`IS_OF_RUN`] if the function
/// starts or awaits an asynchronous execution, else 0; counts such functions. The event is in the lowest bit of `what`, the number of its probe above.
///
/// The section is closed by the caller: one frame less on the way to the totals, as frames are few.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_left(who: u64, now: u64, sp: u64, what: u64) -> u32 {
    let event = if what & 1 == 0 { EngineEvent::Entry } else { EngineEvent::Return };
    let ids = unpacked(who);
    let Some(thread) = THREADS.get_ptr_mut(ids.tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { engines, stack, .. } = unsafe { &*thread };
    let left = engines.left(event, (what >> 1) as u32, sp);
    let frame = if let Some(frame) = left {
        frame
    } else if let Some(frame) = engines.perhaps_left(sp)
        && return_address(frame.sp) != frame.returns_to
    {
        frame
    } else {
        return 0;
    };
    if frame.depth == stack.depth() && frame.ends_unseen == 0 {
        diagnostics::count(DiagnosticKind::Unwound, now, ids.tid);
    }
    if engines.object().0 != 0 && frame.depth == stack.depth() { IS_OF_RUN } else { 1 }
}

/// Returns 1 when the innermost section is of the function that returns, or in it, [`IS_OF_RUN`] if the function starts or
/// awaits an asynchronous execution, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_returned(who: u64, sp: u64, number: u32) -> u32 {
    let Some(thread) = THREADS.get_ptr_mut(unpacked(who).tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { engines, stack, .. } = unsafe { &*thread };
    if !engines.returns(number, sp) {
        return 0;
    }
    match engines.innermost() {
        Some(frame) if engines.object().0 != 0 && frame.depth == stack.depth() => IS_OF_RUN,
        _ => 1,
    }
}

/// Returns 1 when the bracket that a probe begins is open, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_in_bracket(who: u64, begun_by: u32) -> u32 {
    let Some(thread) = THREADS.get_ptr_mut(unpacked(who).tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    u32::from(unsafe { &*thread }.engines.has_bracket(begun_by))
}

/// Closes the innermost section of a thread.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn close_section(who: u64, now: u64) -> u32 {
    let ids = unpacked(who);
    let Some(thread) = THREADS.get_ptr_mut(ids.tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { stack, engines, is_marked, express, .. } = unsafe { &mut *thread };
    perf_counters::charge(Paging::Never, ids, stack, express);
    let found: Diagnostics = marks::end(now, ids, stack, *is_marked, express);
    engines.pop_closed(stack.depth());
    diagnostics::count_all(found, now, ids.tid);
    0
}

/// Packs the ids of a thread into an argument.
#[inline(always)]
pub fn packed(ids: Ids) -> u64 {
    u64::from(ids.tgid) << 32 | u64::from(ids.tid)
}

/// Unpacks the ids of a thread.
#[inline(always)]
pub fn unpacked(who: u64) -> Ids {
    Ids { tgid: (who >> 32) as u32, tid: who as u32 }
}

/// Returns the address that the function returns to which was entered at a stack pointer; 0 where it is in a register.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn return_address(sp: u64) -> u64 {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(sp as *const u64) }.unwrap_or(0)
}

/// Returns 0: the address is in a register.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn return_address(_sp: u64) -> u64 {
    0
}

/// Returns the stack pointer.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn stack_pointer(registers: &pt_regs) -> u64 {
    registers.rsp
}

/// Returns the stack pointer.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn stack_pointer(registers: &pt_regs) -> u64 {
    registers.sp
}
