//! Limits of the frequency of CPUs: changes of those of policies, and of the states of cooling devices.
//!
//! Programs on the events themselves: their raw forms pass structures of the kernel, which differ from build to build.

use aya_ebpf::{
    EbpfContext as _, helpers::generated::bpf_probe_read_kernel_str, macros::tracepoint,
    programs::TracePointContext,
};
use nntrace_common::{
    frequency_limits::{CoolingRecord, DEVICE_BYTES, LimitRecord},
    record::RecordKind,
};

use crate::{
    clock,
    kernel_memory::read,
    maps::{COOLING, COOLING_OFFSETS, IS_RECORDED, LIMITS_OFFSETS},
    other_power_events::evidence_of,
    ring::{self, Wake},
};

/// Handles the frequency limits of a policy; the event comes whether they change or not.
#[tracepoint(category = "power", name = "cpu_frequency_limits")]
pub fn frequency_limits(ctx: TracePointContext) -> u32 {
    let [min, max, cpu] = LIMITS_OFFSETS.load();
    let field = |offset| read(ctx.as_ptr() as u64, offset);
    let (Ok(min_khz), Ok(max_khz), Ok(cpu)) = (field(min), field(max), field(cpu)) else { return 0 };
    let Some(evidence) = evidence_of(cpu) else { return 0 };
    let changes = (evidence.min_khz, evidence.max_khz) != (min_khz, max_khz);
    (evidence.min_khz, evidence.max_khz) = (min_khz, max_khz);
    if changes
        && IS_RECORDED.load() != 0
        && let Some(time) = clock::now()
    {
        let kind = RecordKind::FrequencyLimit as u32;
        ring::emit(LimitRecord { kind, cpu, time, min_khz, max_khz }, Wake::WhenHalfFull);
    }
    0
}

/// Handles the state of a cooling device: governors set it again and again, mostly to what it is.
#[tracepoint(category = "thermal", name = "cdev_update")]
pub fn cooling(ctx: TracePointContext) -> u32 {
    let Some(time) = clock::now() else { return 0 };
    let [place, state] = COOLING_OFFSETS.load();
    let event = ctx.as_ptr() as u64;
    let (Ok(place), Ok(state)) = (read::<u32>(event, place), read::<u64>(event, state)) else { return 0 };
    let mut device = [0_u8; DEVICE_BYTES];
    // `__data_loc`: the offset of the text is in the lower half, its length in the upper one.
    let text = event.wrapping_add(u64::from(place & 0xffff));
    // SAFETY: the helper checks the address, and writes no more than the size it is given, which the buffer has.
    let length = unsafe {
        bpf_probe_read_kernel_str(device.as_mut_ptr().cast(), DEVICE_BYTES as u32, text as *const _)
    };
    // SAFETY: a word of a map that is never removed; the kernel updates one cooling device at a time.
    if length < 0 || unsafe { COOLING.get(&device) } == Some(&state) {
        return 0;
    }
    // Without room for it, every event of the device is emitted.
    let _ = COOLING.insert(&device, &state, 0);
    ring::emit(CoolingRecord { kind: RecordKind::Cooling as u32, device, time, state }, Wake::WhenHalfFull);
    0
}
