//! Table of the use of accelerators and GPUs.

use super::{
    number_format::{self, UNKNOWN, or_unknown},
    snapshot::{DeviceUsage, UsedDevice, UsedEngine},
    terminal_text::{Text, line},
};

/// Columns of names.
const NAMES: usize = 34;

/// Use by device, engine and process; nothing where no device was in use.
#[must_use]
pub(super) fn table(usage: &DeviceUsage) -> Text {
    let mut text = Text::new();
    if usage.devices.is_empty() {
        return text;
    }
    let known = usage.known_ns;
    line!(text, "{:<NAMES$}{:>9}{:>8}{:>10}{:>10}", "device usage", "busy", "share", "clock", "memory");
    for device in &usage.devices {
        line!(text, "{}", name(device));
        for engine in &device.engines {
            engine_lines(&mut text, engine, device, known);
        }
        for process in device.processes.iter().filter(|row| has_line_of_its_own(device, row.pid)) {
            let memory = or_unknown(process.memory_bytes, number_format::bytes);
            line!(
                text,
                "  {:<width$}{UNKNOWN:>9}{UNKNOWN:>8}{UNKNOWN:>10}{memory:>10}",
                comm(device, process.pid),
                width = NAMES - 2
            );
        }
    }
    text
}

fn engine_lines(text: &mut Text, engine: &UsedEngine, device: &UsedDevice, known: u64) {
    let all = known.saturating_mul(engine.capacity);
    let share = |ns| number_format::percent(ns, all);
    let count = if engine.capacity > 1 { format!(" x{}", engine.capacity) } else { String::new() };
    let clock = engine.cycles.zip(engine.busy_ns).filter(|(_, ns)| *ns > 0);
    // Cycles in a millisecond are kHz.
    let clock = clock.map(|(cycles, ns)| (u128::from(cycles) * 1_000_000 / u128::from(ns)) as u64);
    let notes = match engine.implausible {
        0 => String::new(),
        readings => format!("  {}", number_format::plural(readings, "implausible reading")),
    };
    line!(
        text,
        "  {:<width$}{:>9}{:>8}{:>10}{notes}",
        format!("{}{count}, {}", engine.engine, engine.source.name()),
        or_unknown(engine.busy_ns, number_format::duration_ns),
        or_unknown(engine.busy_ns, share),
        or_unknown(clock, |khz| number_format::khz(u32::try_from(khz).unwrap_or(u32::MAX))),
        width = NAMES - 2
    );
    for process in &engine.processes {
        let user = device.processes.iter().find(|user| user.pid == process.pid);
        line!(
            text,
            "    {:<width$}{:>9}{:>8}{:>10}{:>10}",
            comm(device, process.pid),
            number_format::duration_ns(process.busy_ns),
            share(process.busy_ns),
            "",
            or_unknown(user.and_then(|user| user.memory_bytes), number_format::bytes),
            width = NAMES - 4
        );
    }
}

/// Whether a process is in no line of an engine.
fn has_line_of_its_own(device: &UsedDevice, pid: u32) -> bool {
    let mut rows = device.engines.iter().flat_map(|engine| &engine.processes);
    !rows.any(|row| row.pid == pid)
}

/// Returns the name of a device with its driver.
pub(crate) fn name(device: &UsedDevice) -> String {
    if device.driver.is_empty() || device.driver == device.device {
        device.device.clone()
    } else {
        format!("{} ({})", device.device, device.driver)
    }
}

/// Returns a process that had a device open, by name and id.
pub(crate) fn comm(device: &UsedDevice, pid: u32) -> String {
    let user = device.processes.iter().find(|user| user.pid == pid);
    let comm = user.map(|user| user.comm.as_str()).filter(|comm| !comm.is_empty()).unwrap_or(UNKNOWN);
    let bound = if user.is_some_and(|user| user.is_lower_bound) { ", lower bound" } else { "" };
    format!("{comm} ({pid}){bound}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::snapshot::{DeviceUser, EngineUser, UsageSource};

    /// An NPU with two users, one that has it open, and a core whose load is not known.
    pub(crate) fn sample() -> DeviceUsage {
        let user = |pid, comm: &str, busy_ns, memory_bytes, is_lower_bound| DeviceUser {
            pid,
            comm: comm.into(),
            busy_ns,
            memory_bytes,
            is_lower_bound,
        };
        let npu = UsedDevice {
            device: "fdab0000.npu".into(),
            driver: "rocket".into(),
            engines: vec![
                UsedEngine {
                    engine: "npu".into(),
                    capacity: 2,
                    source: UsageSource::Fdinfo,
                    busy_ns: Some(500_000_000),
                    cycles: Some(400_000_000),
                    implausible: 1,
                    processes: vec![
                        EngineUser { pid: 812, busy_ns: 400_000_000 },
                        EngineUser { pid: 90, busy_ns: 100_000_000 },
                    ],
                },
                UsedEngine {
                    engine: "core 0".into(),
                    capacity: 1,
                    source: UsageSource::Sampled,
                    busy_ns: None,
                    cycles: None,
                    implausible: 0,
                    processes: Vec::new(),
                },
            ],
            processes: vec![
                user(812, "camera", 400_000_000, Some(16_480 << 10), false),
                user(90, "", 100_000_000, None, true),
                user(91, "shell", 0, Some(4 << 10), false),
            ],
        };
        DeviceUsage { known_ns: 1_000_000_000, devices: vec![npu], ..DeviceUsage::default() }
    }

    #[test]
    fn engines_and_processes_are_lines() {
        assert_eq!(table(&DeviceUsage::default()), "");
        let usage = sample();
        let expected = "\
device usage                           busy   share     clock    memory
fdab0000.npu (rocket)
  npu x2, per process                500 ms   25.0%   800 MHz  1 implausible reading
    camera (812)                     400 ms   20.0%            16.1 MiB
    - (90), lower bound              100 ms    5.0%                   -
  core 0, sampled                         -       -         -
  shell (91)                              -       -         -     4 KiB
";
        assert_eq!(table(&usage), expected);
    }
}
