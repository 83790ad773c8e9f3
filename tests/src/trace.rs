//! Traces built from text, and their replays.

use std::path::Path;

use anyhow::Result;
use nntrace_user::{
    replay::{self, Options},
    report::snapshot::Snapshot,
};

use crate::{power::Event, snapshot};

/// Formats a line of ftrace text at `ns`.
#[must_use]
pub fn line(ns: u64, tid: u32, pid: u32, payload: &str) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("     worker-{tid} ({pid:>5}) [000] ...1. {seconds}.{fraction:09}: tracing_mark_write: {payload}")
}

/// Formats a line of ftrace text about a CPU's power state, at `ns`; two when another CPU, 0 or else 1, takes it
/// down.
#[must_use]
pub fn power_line(ns: u64, cpu: u32, event: Event) -> String {
    let other = u32::from(cpu == 0);
    let at = |on: u32, what: &str| {
        let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
        format!("          <idle>-0     [{on:03}] d..1. {seconds}.{fraction:09}: {what}")
    };
    match event {
        Event::Idle(state) => at(cpu, &format!("cpu_idle: state={state} cpu_id={cpu}")),
        Event::Frequency(khz) => at(cpu, &format!("cpu_frequency: state={khz} cpu_id={cpu}")),
        Event::Online(false) => {
            let enter = format!("cpuhp_enter: cpu: {cpu:04} target:   0 step:  87 (takedown_cpu)");
            let exit = format!("cpuhp_exit:  cpu: {cpu:04}  state:  86 step:  87 ret: 0");
            at(other, &enter) + "\n" + &at(other, &exit)
        }
        Event::Online(true) => {
            at(cpu, &format!("cpuhp_enter: cpu: {cpu:04} target: 238 step: 147 (sched_cpu_starting)"))
        }
        Event::Lost => format!("CPU:{cpu} [LOST EVENTS]"),
    }
}

/// Replays a trace.
///
/// # Errors
/// When there is no event in it.
pub fn replay(text: impl AsRef<[u8]>) -> Result<Snapshot> {
    replay_with(text, &Options::default())
}

/// Replays a trace with options, whose files are ignored.
///
/// # Errors
/// When there is no event in it.
pub fn replay_with(text: impl AsRef<[u8]>, options: &Options) -> Result<Snapshot> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    replay_file_with(file.path(), options)
}

/// Replays a file.
///
/// # Errors
/// When it cannot be opened, or there is no event in it.
pub fn replay_file(path: &Path) -> Result<Snapshot> {
    replay_file_with(path, &Options::default())
}

/// Replays a file with options, whose own files are ignored.
///
/// # Errors
/// When it cannot be opened, or there is no event in it.
pub fn replay_file_with(path: &Path, options: &Options) -> Result<Snapshot> {
    let options = Options { files: vec![path.to_owned()], ..options.clone() };
    let mut snapshot = snapshot::of(&replay::replay(&options)?.findings())?;
    // The same text gives the same snapshot, whatever the file is called.
    snapshot.source.files.clear();
    Ok(snapshot)
}

/// Trace whose names would break out of a page, act on a terminal, or are no text.
#[must_use]
pub fn hostile() -> Vec<u8> {
    let long = vec![b'n'; 1 << 20];
    let names: [&[u8]; 6] = [
        b"</script><script>ran = 1</script>",
        b"<img src=x onerror=ran=1><!-- --><b>&lt;\"'`${ran = 1}",
        b"\x1b]52;c;ZXZpbA\x07\xe2\x80\xae\xe2\x80\xa8\x7f\xff\xfe",
        b"__proto__",
        b"{script}{data}{style}",
        &long,
    ];
    let mut trace = Vec::new();
    let mut line = |time: usize, event: &[u8]| {
        trace.extend_from_slice(
            format!(" <b>app-7     (    7) [000] d..1. 1.{time:06}: tracing_mark_write: ").as_bytes(),
        );
        trace.extend_from_slice(event);
        trace.push(b'\n');
    };
    for (number, name) in names.iter().enumerate() {
        let attributes = [b"#iter=1#img=".as_slice(), &name[..name.len().min(60)]].concat();
        line(1_000 * number, &[b"B|7|[NN_LR_PE]", *name, &attributes].concat());
        line(1_000 * number + 500, b"E|7");
        line(1_000 * number + 600, &[b"C|7|", *name, b"|1"].concat());
    }
    line(900_000, b"B|7|[NN_LA_PO]case</script><script>ran=1</script>");
    line(990_000, b"E|7");
    trace
}

/// Generator of pseudo-random numbers, the same in each run.
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns the next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // Xorshift with a multiplication (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// Returns a random payload: begins of every layer and phase with every prefix, interface calls, foreign and broken
/// ones, ends.
pub fn payload(random: &mut Random) -> String {
    use nntrace_common::layer::{Layer, Phase};
    const CALLS: [&str; 4] = [
        "HIDL::IDevice::prepareModel::client",
        "HIDL::IDevice::getCapabilities::server",
        "HIDL::IPreparedModel::execute::server",
        "HIDL::IExecutionCallback::notify::client",
    ];
    match random.below(20) {
        0..8 => {
            let layer = Layer::ALL[random.below(Layer::ALL.len() as u64) as usize].code();
            let phase = Phase::ALL[random.below(Phase::ALL.len() as u64) as usize].code();
            let prefix = ["", "", "", "[SW]", "[SUB]"][random.below(5) as usize];
            format!("B|1|{prefix}[NN_{layer}_{phase}]f{}", random.below(9))
        }
        8 => format!("B|1|{}", CALLS[random.below(CALLS.len() as u64) as usize]),
        9 => "B|1|of somebody else".into(),
        10 => "B|1|[NN_LQ_PE]unknown".into(),
        _ => "E|1".into(),
    }
}
