//! Programs that are stopped until what they have mapped is probed, and what the dynamic loader maps.

use aya_ebpf::{EbpfContext as _, helpers::bpf_send_signal, macros::uprobe, programs::ProbeContext};
use nntrace_common::record::{RecordKind, TARGET_TO_HOLD};

use crate::{log, maps::TARGETS, process, task_stack};

const SIGCONT: u32 = 18;
const SIGSTOP: u32 = 19;

/// Stops a launched program at its entry point, so that the libraries that its loader mapped can be probed before
/// it runs.
#[uprobe]
pub fn hold_at_entry(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    // SAFETY: lookup only; the value is not used.
    if unsafe { TARGETS.get(ctx.tgid()) }.is_some() {
        log::entry_point(ctx.tgid());
        send(SIGSTOP);
    }
    0
}

/// The function that loaders call, for debuggers, before they map or unmap libraries, and once more when that is done:
/// no code of a new library has run by then.
///
/// A process that is ours to stop is stopped there. Its signal is sent before user space is told, which continues it:
/// the other way round the signal could come last. If user space cannot be told, it is taken back.
#[uprobe]
pub fn loader_event(ctx: ProbeContext) -> u32 {
    task_stack::keep_frames();
    let tgid = ctx.tgid();
    // SAFETY: user space writes an entry as a whole.
    let Some(&target) = (unsafe { TARGETS.get(tgid) }) else { return 0 };
    log::loader(tgid);
    let held = target == TARGET_TO_HOLD && send(SIGSTOP);
    if !process::emit(RecordKind::Loader, tgid, ctx.pid(), u32::from(held)) && held {
        send(SIGCONT);
    }
    0
}

/// Sends a signal to the process that runs; returns whether that went well.
#[inline(always)]
fn send(signal: u32) -> bool {
    // SAFETY: the helper takes any signal number.
    unsafe { bpf_send_signal(signal) == 0 }
}
