//! Operators of real engines: how much longer a run takes when they are recorded, by hooks and by probes.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::{
    bench::{release, table::Table},
    engines::{self, Engine, Size},
    run::{command, quietly},
};

/// Operators in each run of the chain.
const CHAIN: f64 = engines::CHAIN as f64;
/// Runs of the chain, and of other models, in each round.
const RUNS: [&str; 2] = ["2000", "500"];
/// Longest time of a run of the chain with hooks, relative to one without a profiler, and of a hooked operator, ns.
const CHAIN_GOAL: (f64, f64) = (1.10, 30.0);
/// Longest time of a run of another model with hooks, relative to one without.
const GOAL: f64 = 1.05;
/// Engines with hooked operators, beside the one that runs the chain.
const OTHERS: [&str; 5] = ["litert", "openvino", "ncnn", "mnn", "tract"];
/// Longest time by which a program has loaded an engine later, s.
const START_GOAL: f64 = 0.3;

/// How a run of an engine is watched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Hooks,
    Probes,
    /// By the engine's own profiler.
    Own,
}

impl Way {
    /// Returns the words before the engine's own, and after them.
    fn words(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Plain => (&[], &[]),
            Self::Hooks => (&[], &["--json=/dev/null"]),
            Self::Probes => (&[], &["--json=/dev/null", "--no-hooks", "--engine-level", "op"]),
            Self::Own => (&["--operators"], &[]),
        }
    }
}

/// Runs a model; returns the time of a run, ns, by the script's clock.
fn time(engine: &Engine, model: &str, runs: &str, way: Way) -> Result<f64> {
    let (words, options) = way.words();
    let python = engine.environment()?;
    let mut run = if matches!(way, Way::Hooks | Way::Probes) {
        let mut profiler = command(release("nntrace-bpf")?);
        profiler.args(options).arg("--").arg(python);
        profiler
    } else {
        command(python)
    };
    // What OpenVINO shows by ITT is another way to see its operators.
    run.env("INTEL_LIBITTNOTIFY64", "/no/such/collector.so").env("PYTHONDONTWRITEBYTECODE", "1");
    let text = quietly(run.arg(engine.script()).arg(model).arg(runs).args(words))?;
    let line = text.lines().find(|line| line.starts_with('{')).context("the script printed no result")?;
    let result: Value = serde_json::from_str(line).context("the script's result is not JSON")?;
    let number = |name: &str| result[name].as_f64().with_context(|| format!("the result has no {name}"));
    let runs = number("runs")?;
    ensure!(runs > 0.0, "no run");
    Ok(number("loop_ns")? / runs)
}

/// Measures the chain, then the small model of each other engine.
pub fn measure(rounds: u32) -> Result<Table> {
    let mut table = Table::new("operators of engines");
    chain(&mut table, rounds)?;
    for name in OTHERS {
        let engine = engines::named(name).map_err(anyhow::Error::msg)?;
        let model = engine.model(Size::Tiny)?.display().to_string();
        let mut ratios = Vec::new();
        for _ in 0..rounds {
            let [plain, hooks] = [Way::Plain, Way::Hooks].map(|way| time(engine, &model, RUNS[1], way));
            ratios.push(hooks? / plain?);
        }
        table.ratio(&format!("{name}: a run with hooks / plain"), &ratios).at_most(GOAL);
    }
    start(&mut table, rounds)?;
    table.note("one thread; plain, hooks, probes and the engine's own profiler take turns");
    table.note(format!("the chain is {CHAIN} operators of 16 numbers each in ONNX Runtime, the others run the tests' small model"));
    Ok(table)
}

fn chain(table: &mut Table, rounds: u32) -> Result<()> {
    let engine = engines::named("onnxruntime").map_err(anyhow::Error::msg)?;
    let model = engines::chain()?.display().to_string();
    let ways = [Way::Plain, Way::Hooks, Way::Probes, Way::Own];
    let mut times = ways.map(|_| Vec::new());
    for _ in 0..rounds {
        for (way, times) in ways.iter().zip(&mut times) {
            times.push(time(engine, &model, RUNS[0], *way)?);
        }
    }
    let [plain, hooks, probes, own] = times;
    let us = |times: &[f64]| times.iter().map(|ns| ns / 1e3).collect::<Vec<_>>();
    let ratio = |times: &[f64]| times.iter().zip(&plain).map(|(ns, plain)| ns / plain).collect::<Vec<_>>();
    let each: Vec<f64> = hooks.iter().zip(&plain).map(|(ns, plain)| (ns - plain) / CHAIN).collect();
    table.row("a chain of 200: us a run, plain", &us(&plain));
    table.row("  with hooks", &us(&hooks));
    table.row("  with probes", &us(&probes));
    table.row("  with the engine's own profiler", &us(&own));
    table.ratio("  hooks / plain", &ratio(&hooks)).at_most(CHAIN_GOAL.0);
    table.ratio("  probes / plain", &ratio(&probes));
    table.ratio("  own profiler / plain", &ratio(&own));
    table.row("  an operator by a hook, begin and end, ns", &each).at_most(CHAIN_GOAL.1);
    Ok(())
}

/// Measures how much later a program has loaded an engine.
fn start(table: &mut Table, rounds: u32) -> Result<()> {
    let python = engines::named("onnxruntime").map_err(anyhow::Error::msg)?.environment()?;
    let mut more = Vec::new();
    for _ in 0..rounds {
        let loaded = |is_profiled: bool| -> Result<f64> {
            let begin = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).as_secs_f64();
            let mut run = if is_profiled {
                let mut profiler = command(release("nntrace-bpf")?);
                profiler.args(["--json=/dev/null", "--"]).arg(&python);
                profiler
            } else {
                command(&python)
            };
            let text = quietly(run.args(["-c", PROGRAM]))?;
            let line = text.lines().next().context("the program printed nothing")?;
            let end: f64 = line.trim().parse().with_context(|| format!("`{line}` is not a time"))?;
            Ok(end - begin)
        };
        let plain = loaded(false)?;
        more.push(loaded(true)? - plain);
    }
    table.row("from the start to `import onnxruntime`: s more than plain", &more).at_most(START_GOAL);
    Ok(())
}

/// Program that loads an engine, and prints the time.
const PROGRAM: &str = "import time, onnxruntime; print(time.clock_gettime(time.CLOCK_MONOTONIC))";
