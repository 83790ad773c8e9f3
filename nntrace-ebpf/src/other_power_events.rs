//! Power events besides idle and frequency events, on kernels with these tracepoints.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use nntrace_common::{
    other_power_events::{CpuEvidence, PsciKey},
    time_count::TimeCount,
};

use crate::{
    atomic::add,
    clock,
    helpers::boot_ns,
    kernel_memory::read,
    maps::{EVIDENCE, PSCI, SUSPENDS},
};

/// Handles the request for a state to firmware: `(cpu, parameter, s2idle)`.
#[raw_tracepoint(tracepoint = "psci_domain_idle_enter")]
pub fn psci_enter(ctx: RawTracePointContext) -> i32 {
    let Some(now) = clock::now() else { return 0 };
    if let Some(evidence) = evidence_of(ctx.arg(0)) {
        evidence.psci.begin(now);
        evidence.psci_parameter = ctx.arg(1);
    }
    0
}

/// Handles the return from that state.
#[raw_tracepoint(tracepoint = "psci_domain_idle_exit")]
pub fn psci_exit(ctx: RawTracePointContext) -> i32 {
    let Some(now) = clock::now() else { return 0 };
    let cpu = ctx.arg(0);
    let Some(ns) = evidence_of(cpu).and_then(|evidence| evidence.psci.end(now)) else { return 0 };
    let key = PsciKey { cpu, parameter: ctx.arg(1) };
    if PSCI.get_ptr_mut(key).is_none() {
        // When the table is full, the state is missing from it.
        let _ = PSCI.insert(key, &TimeCount::default(), 0);
    }
    if let Some(total) = PSCI.get_ptr_mut(key) {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe {
            add(&raw mut (*total).ns, ns);
            add(&raw mut (*total).count, 1);
        }
    }
    0
}

/// Handles the kernel's verdict on an idle period: `(cpu, state, below)`.
#[raw_tracepoint(tracepoint = "cpu_idle_miss")]
pub fn idle_miss(ctx: RawTracePointContext) -> i32 {
    let Some(now) = clock::now() else { return 0 };
    if let Some(evidence) = evidence_of(ctx.arg(0))
        && evidence.psci.counts(now)
    {
        // A `bool` leaves the upper part of its register undefined.
        let below = u64::from(ctx.arg::<u8>(2) & 1);
        evidence.below += below;
        evidence.above += 1 - below;
    }
    0
}

/// Handles the begin or the end of a step of suspending or resuming: `(action, value, start)`.
#[raw_tracepoint(tracepoint = "suspend_resume")]
pub fn suspend_resume(ctx: RawTracePointContext) -> i32 {
    /// Name of the step in which the system is suspended.
    const ACTION: [u8; 16] = *b"machine_suspend\0";
    let now = boot_ns();
    if read(ctx.arg(0), 0) != Ok(ACTION) {
        return 0;
    }
    let Some(suspends) = SUSPENDS.get_ptr_mut(0) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only one CPU suspends the system.
    let suspends = unsafe { &mut *suspends };
    if ctx.arg::<u8>(2) & 1 != 0 {
        suspends.spell.begin(now);
    } else if let Some(ns) = suspends.spell.end(now) {
        suspends.total.ns += ns;
        suspends.total.count += 1;
    }
    0
}

/// Returns the evidence of a CPU; `None` when there is no such CPU.
#[inline(always)]
pub fn evidence_of<'a>(cpu: u32) -> Option<&'a mut CpuEvidence> {
    // SAFETY: the pointer comes from the map and is not null; these events come on their own CPU, one at a time, and
    // those on limits write other fields.
    EVIDENCE.get_ptr_mut(cpu).map(|evidence| unsafe { &mut *evidence })
}
