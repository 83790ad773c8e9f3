//! Events of CPUs as lines of ftrace.

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord},
    record::{PowerRecord, Record},
};

use super::push_time;

/// Adds the lines of an idle state, a frequency, its limits, hotplug or a loss; other records have none.
pub(super) fn write(record: &Record, lines: &mut Vec<u8>) {
    match *record {
        Record::Idle(PowerRecord { cpu, time, state, .. }) => {
            push(cpu, time, &format!("cpu_idle: state={state} cpu_id={cpu}"), lines);
        }
        Record::Frequency(PowerRecord { cpu, time, state, .. }) => {
            push(cpu, time, &format!("cpu_frequency: state={state} cpu_id={cpu}"), lines);
        }
        // A CPU that comes runs a step of hotplug itself.
        Record::Hotplug(PowerRecord { cpu, time, state: 1.., .. }) => {
            let step = format!("cpuhp_enter: cpu: {cpu:04} target: 238 step: 147 (sched_cpu_starting)");
            push(cpu, time, &step, lines);
        }
        // One that goes is taken down by another.
        Record::Hotplug(PowerRecord { cpu, time, .. }) => {
            let other = u32::from(cpu == 0);
            let enter = format!("cpuhp_enter: cpu: {cpu:04} target:   0 step:  87 (takedown_cpu)");
            push(other, time, &enter, lines);
            let exit = format!("cpuhp_exit:  cpu: {cpu:04}  state:  86 step:  87 ret: 0");
            push(other, time, &exit, lines);
        }
        Record::FrequencyLimit(LimitRecord { cpu, time, min_khz, max_khz, .. }) => {
            let limits = format!("cpu_frequency_limits: min={min_khz} max={max_khz} cpu_id={cpu}");
            push(cpu, time, &limits, lines);
        }
        Record::Cooling(cooling) => {
            let CoolingRecord { time, state, .. } = cooling;
            let device = String::from_utf8_lossy(cooling.device());
            // Which CPU the kernel decided that on is not known, and does not matter.
            push(0, time, &format!("cdev_update: type={device} target={state}"), lines);
        }
        Record::Lost { cpu, .. } => lines.extend_from_slice(format!("CPU:{cpu} [LOST EVENTS]\n").as_bytes()),
        _ => {}
    }
}

fn push(cpu: u32, time: u64, event: &str, lines: &mut Vec<u8>) {
    lines.extend_from_slice(format!("          <idle>-0       (-------) [{cpu:03}] d..1 ").as_bytes());
    push_time(time, lines);
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(event.as_bytes());
    lines.push(b'\n');
}
