//! Power states: raw tracepoints `cpu_idle` and `cpu_frequency`.
//!
//! Both carry `(state, cpu_id)`; the tables use the event's CPU, not the current one. A frequency is that of the
//! whole policy.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    power::{CpuIdle, FrequencySlice, MAX_POLICY_CPUS},
    record::{FrequencyKey, PowerRecord, RecordKind},
    time_count::TimeCount,
};

use crate::{
    atomic::add,
    clock, diagnostics, event_counts, log,
    maps::{CPU_FREQUENCY, CPU_IDLE, FREQUENCY_TOTALS, NEXT_IN_POLICY},
    ring::{self, Wake},
};

/// Handles a CPU's entering or leaving an idle state.
#[raw_tracepoint(tracepoint = "cpu_idle")]
pub fn cpu_idle(ctx: RawTracePointContext) -> i32 {
    let Some(now) = clock::now() else { return 0 };
    event_counts::power();
    let (state, cpu): (u32, u32) = (ctx.arg(0), ctx.arg(1));
    let Some(idle) = CPU_IDLE.get_ptr_mut(cpu) else {
        diagnostics::count(DiagnosticKind::CpuOutOfRange, now, cpu);
        return 0;
    };
    // SAFETY: the pointer comes from the map and is not null; these events come on their own CPU, one at a time.
    let idle = unsafe { &mut *idle };
    begin_write(idle);
    let step = idle.event(now, state);
    end_write(idle);
    if let Some(anomaly) = step.anomaly {
        diagnostics::count(anomaly.into(), now, cpu);
    }
    if step.closed.is_some() {
        emit(RecordKind::Idle, idle, cpu, now, state);
    }
    0
}

/// Handles a change of frequency of a CPU's policy.
#[raw_tracepoint(tracepoint = "cpu_frequency")]
pub fn cpu_frequency(ctx: RawTracePointContext) -> i32 {
    let Some(now) = clock::now() else { return 0 };
    event_counts::power();
    let (khz, cpu): (u32, u32) = (ctx.arg(0), ctx.arg(1));
    let Some(idle) = CPU_IDLE.get_ptr_mut(cpu) else {
        diagnostics::count(DiagnosticKind::CpuOutOfRange, now, cpu);
        return 0;
    };
    let (mut member, mut changes) = (cpu, false);
    for _ in 0..MAX_POLICY_CPUS {
        changes |= request_frequency(member, now, khz) != 0;
        let Some(&distance) = NEXT_IN_POLICY.get(member) else { break };
        member = member.wrapping_add(distance);
        if member == cpu {
            break;
        }
    }
    if changes {
        // SAFETY: the pointer comes from the map and is not null; only the count of lost records is written.
        emit(RecordKind::Frequency, unsafe { &mut *idle }, cpu, now, khz);
    }
    0
}

/// Sets the requested frequency of a CPU; returns 1 if it has changed, else 0.
///
/// A global function, which the verifier checks once, for any arguments, and not again for each CPU of a policy.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn request_frequency(cpu: u32, now: u64, khz: u32) -> u32 {
    let (Some(frequency), Some(idle)) = (CPU_FREQUENCY.get_ptr_mut(cpu), CPU_IDLE.get_ptr_mut(cpu)) else {
        return 0;
    };
    // SAFETY: the pointers come from the maps and are not null. A policy changes one frequency at a time; values read
    // from `idle` may be slightly old, which the running clock corrects at the next change.
    let (frequency, idle) = unsafe { (&mut *frequency, &mut *idle) };
    step(&mut frequency.sequence);
    let slice = frequency.event(idle, now, khz);
    if let Some(slice) = &slice {
        add_slice(cpu, slice);
    }
    step(&mut frequency.sequence);
    u32::from(slice.is_some())
}

/// Marks the begin or the end of a frequency change for readers.
#[inline(always)]
fn step(sequence: &mut u64) {
    // SAFETY: a valid reference; volatile, so that the compiler keeps the store where it is.
    unsafe { core::ptr::write_volatile(sequence, sequence.wrapping_add(1)) };
}

/// Emits a transition; one without room in the ring is counted for its CPU.
#[inline(always)]
pub fn emit(kind: RecordKind, idle: &mut CpuIdle, cpu: u32, now: u64, state: u32) {
    let record = PowerRecord { kind: kind as u32, cpu, time: now, state, lost: idle.lost };
    if !ring::emit(record, Wake::WhenHalfFull) {
        idle.lost = idle.lost.wrapping_add(1);
    }
}

#[inline(always)]
fn add_slice(cpu: u32, slice: &FrequencySlice) {
    if slice.ns == 0 && slice.hits == 0 {
        return;
    }
    let key = FrequencyKey { cpu, khz: slice.khz, presumed: u32::from(slice.presumed), reserved: 0 };
    if FREQUENCY_TOTALS.get_ptr_mut(key).is_none() {
        // A failure shows as a missing entry below, and as running time without a frequency in the report.
        if FREQUENCY_TOTALS.insert(key, &TimeCount::default(), 0).is_err() {
            log::frequencies_full(cpu);
        }
    }
    if let Some(total) = FREQUENCY_TOTALS.get_ptr_mut(key) {
        // SAFETY: the pointer comes from the map and is not null; two's complement makes the sums right.
        unsafe {
            add(&raw mut (*total).ns, slice.ns.cast_unsigned());
            add(&raw mut (*total).count, slice.hits.cast_unsigned());
        }
    }
}

/// Begins a write: user space reads entries at any time, and tries again if the sequence number is odd or has
/// changed.
#[inline(always)]
pub fn begin_write(idle: &mut CpuIdle) {
    // SAFETY: a plain field of a valid reference; volatile, so that the compiler keeps the store where it is.
    unsafe { core::ptr::write_volatile(&raw mut idle.sequence, idle.sequence.wrapping_add(1)) };
}

/// Ends a write; see [`begin_write`].
#[inline(always)]
pub fn end_write(idle: &mut CpuIdle) {
    begin_write(idle);
}
