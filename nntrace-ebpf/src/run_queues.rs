//! Sampling of a CPU's activity from another one: memory is read, and no CPU is woken.

use aya_ebpf::{
    helpers::generated::bpf_map_lookup_percpu_elem, macros::raw_tracepoint, programs::RawTracePointContext,
};
use nntrace_common::{
    run_queue::{IDLE_NAME_BYTES, RunQueueOffsets, RunQueueSample},
    verifier_bounds,
};

use crate::{
    helpers::current_task,
    kernel_memory::read,
    maps::{RING_COUNTS, RUN_QUEUE_OFFSETS, RUN_QUEUE_SAMPLE},
};

/// Samples the CPU in its argument. Never attached: user space runs it, on its own CPU.
#[raw_tracepoint(tracepoint = "cpu_idle")]
pub fn sample_run_queue(ctx: RawTracePointContext) -> i32 {
    take(ctx.arg(0), queue_in_array)
}

/// Samples a CPU where a group's queues are per-CPU memory. A separate program, as older kernels lack its helper.
#[raw_tracepoint(tracepoint = "cpu_idle")]
pub fn sample_run_queue_from_own(ctx: RawTracePointContext) -> i32 {
    take(ctx.arg(0), queue_from_own)
}

#[inline(always)]
fn take(cpu: u32, queue: impl FnOnce(&RunQueueOffsets, u64, u32) -> Result<u64, i32>) -> i32 {
    let offsets = RUN_QUEUE_OFFSETS.load();
    if let Some(entry) = RUN_QUEUE_SAMPLE.get_ptr_mut(0) {
        let sample = queue(&offsets, current_task(), cpu)
            .and_then(|queue| sample(&offsets, queue, cpu))
            .unwrap_or_default();
        // SAFETY: the pointer comes from the map and is not null; user space has one run of this at a time.
        unsafe { *entry = sample };
    }
    0
}

/// Returns the queue of the task's group on a CPU, from an array.
#[inline(always)]
fn queue_in_array(offsets: &RunQueueOffsets, task: u64, cpu: u32) -> Result<u64, i32> {
    let group = pointer(task, offsets.task_group)?;
    let queues = pointer(group, offsets.group_queues)?;
    pointer(queues, cpu.wrapping_mul(size_of::<u64>() as u32))
}

/// Returns the queue of the task's group on a CPU, from per-CPU memory: the values of two CPUs always have the same
/// distance, so the distance in a map of ours leads from this CPU's queue to the other one's. A program that user
/// space runs stays on its CPU.
#[inline(always)]
fn queue_from_own(offsets: &RunQueueOffsets, task: u64, cpu: u32) -> Result<u64, i32> {
    let own = pointer(task, offsets.own_queue)?;
    let (map, key) = ((&raw const RING_COUNTS).cast_mut().cast(), 0_u32);
    let here = RING_COUNTS.get_ptr(0).ok_or(-1)?;
    // SAFETY: the map is one by CPU, and the key is of its kind.
    let there = unsafe { bpf_map_lookup_percpu_elem(map, (&raw const key).cast(), cpu) };
    if there.is_null() {
        return Err(-1);
    }
    // The difference first: the verifier allows nothing else with addresses of maps.
    let distance = verifier_bounds::opaque((there as usize).wrapping_sub(here as usize));
    Ok(own.wrapping_add(distance as u64))
}

#[inline(always)]
fn sample(offsets: &RunQueueOffsets, queue: u64, cpu: u32) -> Result<RunQueueSample, i32> {
    let run_queue = pointer(queue, offsets.queue)?;
    let nothing = RunQueueSample { seen: RunQueueSample::NOTHING, name: [0; IDLE_NAME_BYTES] };
    // The path was right if it ends at the wanted run queue.
    if read::<u32>(run_queue, offsets.cpu)? != cpu {
        return Ok(nothing);
    }
    let state = if offsets.idle_state == 0 { 0 } else { pointer(run_queue, offsets.idle_state)? };
    if state != 0 {
        return Ok(RunQueueSample { seen: RunQueueSample::IDLE_STATE, name: read(state, offsets.name)? });
    }
    let idles = pointer(run_queue, offsets.current)? == pointer(run_queue, offsets.idle)?;
    Ok(RunQueueSample {
        seen: if idles { RunQueueSample::IDLE_TASK } else { RunQueueSample::TASK },
        ..nothing
    })
}

#[inline(always)]
fn pointer(base: u64, offset: u32) -> Result<u64, i32> {
    read(base, offset)
}
