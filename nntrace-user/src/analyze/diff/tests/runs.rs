//! Runs of a made-up program on a made-up machine: traces, replayed.

use std::{fmt::Write as _, fs};

use crate::{
    analyze::diff::Run,
    replay::{self, Options},
    report::snapshot::Snapshot,
};

/// Generator of numbers that look random, by the constants of MMIX.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Returns a number that is about normal, of mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next() as f64 / (1_u64 << 31) as f64).sum::<f64>() - 6.0
    }
}

/// Program and machine that runs are of.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    /// Relative deviation of a phase from run to run.
    pub(super) noise: f64,
    /// Phase that is slower, and its factor.
    pub(super) slow_down: Option<(&'static str, f64)>,
    /// Executions of a run.
    pub(super) executions: u32,
    /// CPUs.
    pub(super) cpus: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Self { noise: 0.02, slow_down: None, executions: 20, cpus: 2 }
    }
}

/// Returns runs of a machine.
pub(super) fn pool(machine: &Machine, runs: usize, seed: u64) -> Vec<Run> {
    let mut random = Random::new(seed);
    (0..runs).map(|run| one(machine, &format!("run{run}.json"), &mut random)).collect()
}

/// Time of each phase without what is nested in it, ns.
const PHASES: [(&str, f64); 6] = [
    ("LA_PE", 300_000.0),
    ("LR_PC", 900_000.0),
    ("LR_PE", 200_000.0),
    ("LD_PE", 2_000_000.0),
    ("LC_PCO", 700_000.0),
    ("LU_PR", 80_000.0),
];

#[expect(clippy::cast_sign_loss, reason = "noise is far smaller than what it is added to")]
fn positive(ns: f64) -> u64 {
    ns as u64
}

fn one(machine: &Machine, name: &str, random: &mut Random) -> Run {
    let factor = |tag: &str| match machine.slow_down {
        Some((slow, factor)) if slow == tag => factor,
        _ => 1.0,
    };
    let times = PHASES.map(|(tag, ns)| (tag, ns * factor(tag) * (1.0 + machine.noise * random.normal())));
    let mut trace = Trace { text: String::new(), ns: 1_000_000_000 };
    let time = |tag: &str, random: &mut Random| {
        let ns = times.iter().find(|(known, _)| *known == tag).map_or(0.0, |(_, ns)| *ns);
        positive(ns * (1.0 + 0.05 * random.normal()))
    };
    trace.begin("LA_PO", "case");
    for execution in 0..machine.executions {
        let cpu = execution % machine.cpus;
        trace.power(cpu, 4_294_967_295);
        trace.begin("LA_PE", "run");
        trace.pass(time("LA_PE", random));
        if execution == 0 {
            trace.begin("LR_PC", "compile");
            trace.pass(time("LR_PC", random));
            trace.end();
        }
        trace.begin("LR_PE", "compute");
        for (tag, function) in [("LD_PE", "execute"), ("LC_PCO", "conv|2d"), ("LU_PR", "copy")] {
            trace.pass(time("LR_PE", random) / 3);
            trace.begin(tag, function);
            trace.pass(time(tag, random));
            trace.end();
        }
        trace.end();
        trace.end();
        trace.power(cpu, random.below(2) as u32);
        trace.pass(400_000);
    }
    trace.end();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), trace.text).unwrap();
    let options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    let replayed = replay::replay(&options).unwrap();
    Run { name: name.into(), snapshot: Snapshot::of(&replayed.findings()) }
}

/// Trace of one thread, in ftrace's text.
struct Trace {
    text: String,
    ns: u64,
}

impl Trace {
    fn line(&mut self, task: &str, cpu: u32, event: std::fmt::Arguments<'_>) {
        let (seconds, fraction) = (self.ns / 1_000_000_000, self.ns % 1_000_000_000);
        let line = format_args!("{task} [{cpu:03}] .... {seconds}.{fraction:09}: {event}");
        writeln!(self.text, "{line}").unwrap();
        self.ns += 100;
    }

    fn begin(&mut self, tag: &str, function: &str) {
        self.line("app-7", 0, format_args!("tracing_mark_write: B|7|[NN_{tag}]{function}"));
    }

    fn end(&mut self) {
        self.line("app-7", 0, format_args!("tracing_mark_write: E|7"));
    }

    fn power(&mut self, cpu: u32, state: u32) {
        self.line("<idle>-0", cpu, format_args!("cpu_idle: state={state} cpu_id={cpu}"));
    }

    fn pass(&mut self, ns: u64) {
        self.ns += ns;
    }
}
