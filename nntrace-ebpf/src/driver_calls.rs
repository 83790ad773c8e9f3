//! Calls of drivers as sections: `ioctl` on the devices that user space names, from the system call to its return.
//!
//! They are sections of engines whose function is the system call: no other event of the thread comes between, as a
//! signal is delivered after the return.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use nntrace_common::{
    driver_calls::{DRIVER_CALL, DRIVER_CALL_LABEL},
    mark,
};

use crate::{
    clock, engines, event_counts,
    maps::{DRIVER_CALLERS, DRIVER_DEVICES},
    mark_text,
    system_calls::{self, IOCTL},
    thread, traced_processes,
};

/// Handles the begin of a system call: `(registers, number)`.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn driver_call(ctx: RawTracePointContext) -> i32 {
    if ctx.arg::<u64>(1) != IOCTL {
        return 0;
    }
    let Some(ids) = traced_processes::target() else { return 0 };
    let Some(now) = clock::now_inside() else { return 0 };
    let registers = ctx.arg(0);
    if let (Ok(descriptor), Ok(request), Ok(sp)) = (
        system_calls::argument(registers, 0),
        system_calls::argument(registers, 1),
        system_calls::stack_pointer(registers),
    ) && let Ok(number) = system_calls::character_device(descriptor)
        // SAFETY: user space writes an entry once, before the program is attached.
        && let Some(device) = unsafe { DRIVER_DEVICES.get(number) }
        && let Some(thread) = thread::state(now, ids)
    {
        event_counts::mark();
        let text = &mut thread.mark;
        mark_text::clear(text);
        text.len = device.write_call_name(request as u32, &mut text.payload);
        text.name_at = 0;
        let name = mark::name_hash(mark::Captured::of(&text.payload), 0);
        engines::begin(ids, now, sp, DRIVER_CALL, DRIVER_CALL_LABEL, true, name);
        // SAFETY: lookup only; the value is not used.
        if unsafe { DRIVER_CALLERS.get(ids.tgid) }.is_none() {
            // Without room its layers are reported as those of other processes.
            let _ = DRIVER_CALLERS.insert(ids.tgid, &1, 0);
        }
        system_calls::add_cost(now);
    }
    0
}

/// Handles the end of a system call: `(registers, result)`.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub fn driver_call_returned(ctx: RawTracePointContext) -> i32 {
    let registers = ctx.arg(0);
    if system_calls::number(registers) != Ok(IOCTL) {
        return 0;
    }
    if let Some(ids) = traced_processes::target()
        && let Some(now) = clock::now_inside()
        && let Ok(sp) = system_calls::stack_pointer(registers)
    {
        engines::end(ids, now, sp, DRIVER_CALL);
    }
    0
}
