//! Predictions of the example pipeline, against the same pipeline really rebuilt with other speeds.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::{
    bench::{machine, spread::Spread},
    run::{as_root, cargo, command, quietly, run, target_dir},
    setup,
};

/// Deviation of a prediction that is allowed in any case, as a share.
const ALLOWED: f64 = 0.1;
/// Deviation of a prediction that is allowed where threads share CPUs, as a share.
const ALLOWED_SHARED: f64 = 0.15;
/// Change that is taken for none, as a share.
const NOTHING: f64 = 0.05;

/// Options of the measurement.
#[derive(Args)]
pub struct WhatIf {
    /// How often each pipeline runs; they take turns
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

/// Pipeline that is predicted and run at several speeds.
struct Pipeline {
    title: &'static str,
    /// Steps for each item, by stage.
    work: &'static str,
    /// Items of each run.
    items: u32,
    /// Speeds of the stages.
    speeds: &'static [[f64; 3]],
    /// Whether there are more stages than CPUs.
    is_shared: bool,
}

const PIPELINES: [Pipeline; 2] = [
    Pipeline {
        title: "two stages",
        work: "150000,400000",
        items: 800,
        speeds: &[
            [1.0, 1.0, 1.0],
            [1.0, 1.25, 1.0],
            [1.0, 1.5, 1.0],
            [1.0, 2.0, 1.0],
            [1.0, 4.0, 1.0],
            [2.0, 1.0, 1.0],
            [1.0, 0.5, 1.0],
            [2.0, 4.0, 1.0],
            [4.0, 4.0, 1.0],
        ],
        is_shared: false,
    },
    Pipeline {
        title: "three stages on two CPUs",
        // Where no CPU is idle, what the recording takes is missing: it is less with fewer items.
        work: "600000,1600000,1000000",
        items: 200,
        speeds: &[[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 2.0], [1.0, 0.5, 1.0]],
        is_shared: true,
    },
];

impl WhatIf {
    /// Builds the programs, and measures each pipeline.
    pub fn run(&self) -> Result<()> {
        setup::live()?;
        run(cargo("build").args([
            "-p",
            "nntrace-user",
            "-p",
            "nntrace-tests",
            "--bin",
            "nntrace-bpf",
            "--bin",
            "pipeline",
        ]))?;
        println!("{}\n", machine::describe(None));
        let mut wrong = Vec::new();
        for pipeline in &PIPELINES {
            wrong.extend(self.measure(pipeline)?);
        }
        if wrong.is_empty() { Ok(()) } else { bail!("beyond what is allowed:\n  {}", wrong.join("\n  ")) }
    }

    /// Measures a pipeline; returns what is beyond what is allowed.
    fn measure(&self, pipeline: &Pipeline) -> Result<Vec<String>> {
        let folder = target_dir()?.join("what-if");
        if folder.exists() {
            // Root has written it.
            run(&mut as_root(with_args("rm", &["-r"], &folder))?)?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut predictions: Vec<Vec<Value>> = vec![Vec::new(); pipeline.speeds.len()];
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); pipeline.speeds.len()];
        for round in 0..self.runs {
            // Hosts are faster now and slower then: each round has a recording of its own.
            let recording = folder.join(round.to_string());
            record(pipeline, &recording)?;
            for ((speeds, times), predictions) in pipeline.speeds.iter().zip(&mut times).zip(&mut predictions)
            {
                let mut real = for_root();
                real.args(FIRST).args(words(pipeline, *speeds)?);
                let output = quietly(&mut as_root(real)?)?;
                times.push(number(&serde_json::from_str(&output)?, "/makespan_ns")?);
                predictions.push(predict(&recording, *speeds)?);
            }
        }
        table(pipeline, &predictions, &times)
    }
}

/// Records a pipeline.
fn record(pipeline: &Pipeline, folder: &Path) -> Result<()> {
    let mut record = for_root();
    if pipeline.is_shared {
        record.args(BEFORE_ALL);
    }
    record.arg(program("nntrace-bpf")?).args(["record", "--level", "sched", "--json=/dev/null", "-o"]);
    record.arg(folder).arg("--").args(FIRST).args(words(pipeline, [1.0; 3])?);
    quietly(&mut as_root(record)?).map(drop)
}

/// Returns the words that run a pipeline at these speeds.
fn words(pipeline: &Pipeline, [a, b, c]: [f64; 3]) -> Result<Vec<String>> {
    let mut words = vec![program("pipeline")?, "--work".into(), pipeline.work.into(), "--items".into()];
    words.push(pipeline.items.to_string());
    for (name, speed) in [("--scale-a", a), ("--scale-b", b), ("--scale-c", c)] {
        words.extend([name.to_owned(), speed.to_string()]);
    }
    Ok(words)
}

/// Words before a command that run it before all ordinary work of the host: its own threads take turns by 100 ms.
const FIRST: [&str; 3] = ["chrt", "--rr", "1"];

/// Words before a command that records a pipeline where no CPU is left that could drain its rings.
const BEFORE_ALL: [&str; 3] = ["chrt", "--rr", "2"];

/// Returns a command for root that launches others as root, too.
fn for_root() -> Command {
    let mut env = command("env");
    env.args(["-u", "SUDO_UID", "-u", "SUDO_GID", "-u", "SUDO_USER"]);
    env
}

fn with_args(program: &str, args: &[&str], path: &Path) -> Command {
    let mut command = command(program);
    command.args(args).arg(path);
    command
}

/// Returns the path of a program that was built.
fn program(name: &str) -> Result<String> {
    Ok(target_dir()?.join("debug").join(name).display().to_string())
}

fn predict(recording: &Path, [a, b, c]: [f64; 3]) -> Result<Value> {
    let mut what_if = command(program("nntrace-bpf")?);
    what_if.arg("what-if").arg(recording).arg("--json");
    for (name, speed) in [("stage_a", a), ("stage_b", b), ("stage_c", c)] {
        if (speed - 1.0).abs() > f64::EPSILON {
            what_if.args(["--speed", &format!("{name}={speed}x")]);
        }
    }
    // Nothing else than recorded: all the same a prediction.
    what_if.args(["--speed", "unmarked=1x"]);
    let output = quietly(&mut as_root(what_if)?)?;
    serde_json::from_str(&output).context("the answer is no JSON")
}

fn number(value: &Value, pointer: &str) -> Result<f64> {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .with_context(|| format!("there is no {pointer} in {value}"))
}

/// Prints the table of a pipeline; returns what is beyond what is allowed.
fn table(pipeline: &Pipeline, predictions: &[Vec<Value>], times: &[Vec<f64>]) -> Result<Vec<String>> {
    println!("{}, {} steps\n", pipeline.title, pipeline.work);
    println!("| speeds | predicted | real median (min) | deviation | spread | subtracted |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut wrong = Vec::new();
    let base = Spread::of(&times[0]).median;
    for ((speeds, predictions), times) in pipeline.speeds.iter().zip(predictions).zip(times) {
        let median = |value: &dyn Fn(&Value) -> Result<f64>| -> Result<f64> {
            Ok(Spread::of(&predictions.iter().map(value).collect::<Result<Vec<f64>>>()?).median)
        };
        let predicted = median(&|prediction| number(prediction, "/makespan_ns/predicted"))?;
        let real = Spread::of(times);
        let away: Vec<f64> = times.iter().map(|time| (time - real.median).abs()).collect();
        let spread = Spread::of(&away).median / real.median;
        let deviation = predicted / real.median - 1.0;
        let stages = pipeline.work.split(',').count();
        let names: Vec<String> = speeds[..stages].iter().map(ToString::to_string).collect();
        let name = names.join(", ");
        println!(
            "| {name} | {:.1} ms | {:.1} ms ({:.1}) | {:+.1} % | {:.1} % | {:.1} ms |",
            predicted / 1e6,
            real.median / 1e6,
            real.min / 1e6,
            deviation * 100.0,
            spread * 100.0,
            median(&|prediction| subtracted(prediction, speeds))? / 1e6,
        );
        let changed = speeds.iter().filter(|speed| (**speed - 1.0).abs() > f64::EPSILON).count();
        let least = if pipeline.is_shared { ALLOWED_SHARED } else { ALLOWED };
        if changed <= 1 && deviation.abs() > least.max(2.0 * spread) {
            wrong.push(format!("{}, {name}: {:+.1} %", pipeline.title, deviation * 100.0));
        }
        let is_off_path = !pipeline.is_shared && speeds[0] > 1.0 && changed == 1;
        let change = median(&|prediction| number(prediction, "/makespan_ns/change"))?;
        if is_off_path
            && (change.abs() > NOTHING || (real.median / base - 1.0).abs() > NOTHING.max(2.0 * spread))
        {
            wrong.push(format!("{}, {name}, off the path: {:+.1} %", pipeline.title, change * 100.0));
        }
    }
    println!();
    Ok(wrong)
}

/// Returns the recorded time less what the stages save by themselves, which takes them for one after the other, ns.
fn subtracted(prediction: &Value, speeds: &[f64; 3]) -> Result<f64> {
    let work = |name: &str| -> Result<f64> {
        let rows = prediction["work"].as_array().context("the answer has no work")?;
        let row = rows.iter().find(|row| row["name"].as_str().is_some_and(|row| row.ends_with(name)));
        row.map_or(Ok(0.0), |row| number(row, "/work_ns"))
    };
    let mut time = number(prediction, "/makespan_ns/recorded")?;
    for (name, speed) in [":stage_a", ":stage_b", ":stage_c"].into_iter().zip(speeds) {
        time -= work(name)? * (1.0 - 1.0 / speed);
    }
    Ok(time)
}
