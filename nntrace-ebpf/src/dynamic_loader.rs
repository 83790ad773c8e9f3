//! Holding of programs until their mappings are probed, and notifications of the dynamic loader.

use aya_ebpf::{
    bindings::BPF_RB_FORCE_WAKEUP, helpers::bpf_send_signal, macros::uprobe, programs::ProbeContext,
};
use nntrace_common::record::{RecordKind, TARGET_TO_HOLD};

use crate::{
    log,
    maps::{STOPS, TARGETS},
    task_ids::{self, Ids},
    task_stack, traced_processes,
};

const SIGCONT: u32 = 18;
const SIGSTOP: u32 = 19;

/// Stops a launched program at its entry point, so that the libraries that its loader mapped can be probed before it
/// runs.
#[uprobe]
pub fn hold_at_entry(_ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    if let Some(ids) = traced_processes::target() {
        log::entry_point(ids.tgid);
        send(SIGSTOP);
    }
    0
}

/// Handles a call of the function that loaders call, for debuggers, before they map or unmap libraries, and again
/// when that is done: no code of a new library has run by then.
///
/// A process that may be stopped is stopped there, under the eyes of a guard that continues it if user space does not. Its signal is sent before the record to user space, which
/// continues the process: in the other order the signal could come last. If there is no record, the signal is taken
/// back.
#[uprobe]
pub fn loader_event(_ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    let Ids { tgid, tid } = task_ids::current();
    // SAFETY: user space writes an entry as a whole.
    let Some(&target) = (unsafe { TARGETS.get(tgid) }) else { return 0 };
    log::loader(tgid);
    let held = target == TARGET_TO_HOLD && stop();
    if !traced_processes::emit(RecordKind::Loader, tgid, tid, u32::from(held)) && held {
        send(SIGCONT);
    }
    0
}

/// Stops the current process, with a record for the guard; returns whether that succeeded.
#[inline(always)]
fn stop() -> bool {
    let is_stopped = send(SIGSTOP);
    if is_stopped {
        // When the ring is full, the guard has not yet looked after earlier stops, and covers this one with them.
        let _ = STOPS.output(1, u64::from(BPF_RB_FORCE_WAKEUP));
    }
    is_stopped
}

/// Sends a signal to the current process; returns whether that succeeded.
#[inline(always)]
fn send(signal: u32) -> bool {
    // SAFETY: the helper takes any signal number.
    unsafe { bpf_send_signal(signal) == 0 }
}
