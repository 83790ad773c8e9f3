//! The machine that was measured.

use std::{fs, thread};

use crate::bench::emit_marks::Site;

/// One line on the machine. `probed` is what a probe made of the mark function.
pub fn describe(probed: Site) -> String {
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown kernel".into());
    let model = model().unwrap_or_else(|| "unknown CPU".into());
    let cpus = thread::available_parallelism().map_or_else(|_| "?".into(), |cpus| cpus.to_string());
    let load = read("/proc/loadavg").and_then(|load| Some(load.split(' ').next()?.to_owned()));
    let probe = if probed == Site::Call { "optimised (a call)" } else { "not optimised (a trap)" };
    format!(
        "Linux {kernel}, {model}, {cpus} CPUs, load {}, uprobes {probe}",
        load.unwrap_or_else(|| "?".into())
    )
}

/// The CPU's name where the kernel knows it, else the board's.
fn model() -> Option<String> {
    let cpuinfo = read("/proc/cpuinfo")?;
    let named = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    named.or_else(|| read("/sys/firmware/devicetree/base/model"))
}

/// A small file's text; the firmware's end with a NUL.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end_matches('\0').trim().to_owned())
}
