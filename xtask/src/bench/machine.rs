//! Description and CPUs of the host.

use std::{fs, thread};

use anyhow::{Context, Result};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use crate::bench::emit_marks::Site;

/// Describes the host in one line. `probed` is the state of a probed mark function; `None` where there was none.
pub fn describe(probed: Option<Site>) -> String {
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown kernel".into());
    let model = model().unwrap_or_else(|| "unknown CPU".into());
    let cpus = thread::available_parallelism().map_or_else(|_| "?".into(), |cpus| cpus.to_string());
    let load = read("/proc/loadavg").and_then(|load| Some(load.split(' ').next()?.to_owned()));
    let load = load.unwrap_or_else(|| "?".into());
    let probe = match probed {
        Some(Site::Call) => ", uprobes optimised (a call)",
        Some(_) => ", uprobes not optimised (a trap)",
        None => "",
    };
    format!("Linux {kernel}, {model}, {cpus} CPUs, load {load}{probe}")
}

/// Returns the CPUs that this program may use, ascending.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).context("the CPUs of this program are not known")?;
    Ok((0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect())
}

/// Moves this thread to a CPU, with everything that it starts from now on.
pub fn pin(cpu: usize) -> Result<()> {
    pin_to(&[cpu])
}

/// Moves this thread to some CPUs, with everything that it starts from now on.
pub fn pin_to(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter()
        .try_for_each(|&cpu| set.set(cpu))
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("cannot move to the CPUs {cpus:?}"))
}

/// Returns the CPU's name where the kernel knows it, else the board's.
fn model() -> Option<String> {
    let cpuinfo = read("/proc/cpuinfo")?;
    let named = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    named.or_else(|| read("/sys/firmware/devicetree/base/model"))
}

/// Reads the text of a small file; the firmware's end with a NUL.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end_matches('\0').trim().to_owned())
}
