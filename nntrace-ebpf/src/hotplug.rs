//! CPUs that go offline and come back: the raw tracepoint `cpuhp_exit` with `(cpu, state, step, result)`.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use nntrace_common::record::RecordKind;

use crate::{
    clock, event_counts,
    helpers::current_cpu,
    log,
    maps::{CPU_IDLE, TAKEDOWN_STEP},
    power,
};

/// Handles the end of a step of taking a CPU down or of bringing it up.
///
/// The step that takes it down is finished by another CPU, which has waited until it was dead. The first step that a
/// CPU runs itself afterwards brings it up.
#[raw_tracepoint(tracepoint = "cpuhp_exit")]
pub fn cpuhp_exit(ctx: RawTracePointContext) -> i32 {
    let (cpu, step, result): (u32, u32, i32) = (ctx.arg(0), ctx.arg(2), ctx.arg(3));
    let is_down = step == TAKEDOWN_STEP.load() && result == 0;
    if !is_down && cpu != current_cpu() {
        return 0;
    }
    let Some(now) = clock::now() else { return 0 };
    let Some(idle) = CPU_IDLE.get_ptr_mut(cpu) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; this is that CPU, or that CPU is dead.
    let idle = unsafe { &mut *idle };
    power::begin_write(idle);
    let changed = idle.hotplug(now, !is_down).is_some();
    power::end_write(idle);
    // User space also runs this program, possibly without a change.
    if changed {
        log::hotplug(cpu, u32::from(!is_down));
        event_counts::power();
        power::emit(RecordKind::Hotplug, idle, cpu, now, u32::from(!is_down));
    }
    0
}
