//! Fuzzing with libFuzzer. The compiler's own coverage passes instrument the programs, so any toolchain works.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    apt,
    run::{cargo, command, on_path, quietly, run, target_dir},
    setup,
};

/// Flags that show libFuzzer the path of an input through the code.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Length of an input at most, bytes: kept files stay small.
const LONGEST: &str = "-max_len=4096";

/// Size of all kept inputs at most, bytes.
const MOST_KEPT: u64 = 1 << 20;

/// Folder of the fuzz targets, in the workspace.
const HOME: &str = "tests/fuzz";

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub struct Fuzz {
    /// How long each target runs, seconds
    #[arg(long, default_value_t = 120, value_name = "N")]
    seconds: u32,
    /// Run nothing; of what was found, keep the smallest inputs that reach more of the code than those kept before
    #[arg(long)]
    keep: bool,
    /// The targets; all of them, if none is named
    targets: Vec<String>,
}

impl Fuzz {
    /// Builds the targets and runs them one after the other.
    pub fn run(&self) -> Result<()> {
        let targets = self.targets()?;
        setup::build()?;
        if !on_path("c++") {
            apt::install(&["g++"])?;
        }
        let place = target_dir()?.join("fuzz");
        let programs = build(&place)?;
        let targets = targets.iter().map(|name| Target::new(name, &programs, &place));
        let targets = targets.collect::<Result<Vec<_>>>()?;
        if self.keep {
            targets.iter().try_for_each(Target::keep)?;
            return small_enough();
        }
        let mut failed = Vec::new();
        let outcomes = targets.iter().map(|target| {
            println!("fuzzing    {} for {} s, log in {}", target.name, self.seconds, target.log.display());
            let outcome = target.fuzz(self.seconds)?;
            if !outcome.passed {
                failed.push(target.name.clone());
            }
            Ok(outcome)
        });
        let outcomes = outcomes.collect::<Result<Vec<_>>>()?;
        for (target, outcome) in targets.iter().zip(outcomes) {
            println!("{:<12} {}", target.name, outcome.text);
            if let Some(again) = outcome.again {
                println!("{:<12} failed; again: {again}", "");
            }
        }
        if !failed.is_empty() {
            bail!("these targets failed: {}; their logs tell how", failed.join(", "));
        }
        println!("`cargo xtask fuzz --keep` adds what is new to {HOME}/corpus");
        Ok(())
    }

    /// Returns the targets that were named, or all.
    fn targets(&self) -> Result<Vec<String>> {
        let sources = fs::read_dir(in_workspace("src/bin")).context("the fuzz targets are not there")?;
        let mut all = Vec::new();
        for source in sources {
            all.extend(source?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        all.sort();
        if let Some(unknown) = self.targets.iter().find(|name| !all.contains(name)) {
            bail!("there is no fuzz target {unknown}; there are {}", all.join(", "));
        }
        Ok(if self.targets.is_empty() { all } else { self.targets.clone() })
    }
}

/// Program, and the places of its inputs.
struct Target {
    name: String,
    program: PathBuf,
    /// Inputs found in all runs here.
    found: PathBuf,
    /// Inputs kept in the repository.
    kept: PathBuf,
    /// Folder of inputs that crash it.
    crashes: PathBuf,
    log: PathBuf,
}

/// Outcome of a run.
struct Outcome {
    passed: bool,
    text: String,
    /// Command that reproduces the failure.
    again: Option<String>,
}

impl Target {
    fn new(name: &str, programs: &Path, place: &Path) -> Result<Self> {
        let target = Self {
            name: name.to_owned(),
            program: programs.join(name),
            found: place.join("corpus").join(name),
            kept: in_workspace("corpus").join(name),
            crashes: place.join("crashes").join(name),
            log: place.join(name).with_extension("log"),
        };
        for folder in [&target.found, &target.kept, &target.crashes] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Ok(target)
    }

    fn libfuzzer(&self) -> Command {
        let mut program = command(&self.program);
        program.args(["-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1", LONGEST]);
        program.arg(format!("-artifact_prefix={}/", self.crashes.display()));
        program
    }

    fn fuzz(&self, seconds: u32) -> Result<Outcome> {
        let log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        let mut program = self.libfuzzer();
        program.arg(format!("-max_total_time={seconds}"));
        program.arg(format!("-dict={}", in_workspace("trace.dict").display()));
        program.arg(&self.found).arg(&self.kept);
        let status = program
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .status()
            .with_context(|| format!("{} does not start", self.program.display()))?;
        let log = fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let log = String::from_utf8_lossy(&log);
        let number = |name: &str| -> Option<u64> {
            log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.trim().parse().ok())
        };
        let number = |name: &str| number(name).map_or("?".into(), |value| value.to_string());
        let text = format!(
            "{:>10} executions, {:>6} a second, {:>5} new inputs",
            number("number_of_executed_units:"),
            number("average_exec_per_sec:"),
            number("new_units_added:")
        );
        let crash = log.lines().find_map(|line| Some(line.split_once("Test unit written to ")?.1));
        let again = crash.map(|crash| format!("{} {crash}", self.program.display()));
        Ok(Outcome { passed: status.success(), text, again })
    }

    /// Adds the inputs that reach more of the code to the kept ones.
    fn keep(&self) -> Result<()> {
        let before = sizes(&self.kept)?.len();
        // By places in the code alone: including how often each is reached would keep ten times as much.
        let mut merge = self.libfuzzer();
        quietly(merge.args(["-merge=1", "-use_counters=0"]).arg(&self.kept).arg(&self.found))?;
        let kept = sizes(&self.kept)?;
        println!(
            "{:<12} {:>5} inputs kept, {} bytes; {} of them new",
            self.name,
            kept.len(),
            kept.iter().sum::<u64>(),
            kept.len() - before
        );
        Ok(())
    }
}

/// Builds all targets; returns the folder of the programs.
fn build(place: &Path) -> Result<PathBuf> {
    let about = quietly(command("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not tell what it compiles for")?;
    let mut build = cargo("build");
    build.args([
        "--quiet",
        "--package",
        "nntrace-fuzz",
        "--features",
        "libfuzzer",
        "--bins",
        "--profile",
        "fuzz",
    ]);
    // With an explicit target, the flags do not apply to build scripts, which are not linked with libFuzzer.
    build.args(["--target", host, "--target-dir"]).arg(place).env("RUSTFLAGS", COVERAGE);
    println!("building   the fuzz targets");
    run(&mut build)?;
    Ok(place.join(host).join("fuzz"))
}

/// Fails when the kept inputs are too large for a repository.
fn small_enough() -> Result<()> {
    let mut all = 0;
    for folder in fs::read_dir(in_workspace("corpus"))? {
        all += sizes(&folder?.path())?.iter().sum::<u64>();
    }
    if all > MOST_KEPT {
        bail!("{HOME}/corpus has {all} bytes, more than {MOST_KEPT}: take out what is of least use");
    }
    Ok(())
}

/// Returns the sizes of the files in a folder, bytes.
fn sizes(folder: &Path) -> Result<Vec<u64>> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).collect()
}

fn in_workspace(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(HOME).join(path)
}
