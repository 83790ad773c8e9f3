//! Instructions that a mark takes, on the way from the program to the totals: a figure that does not depend on what else
//! the machine does.

mod counts;

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    apt,
    bench::{machine, pairs::compile, trace_text},
    instructions::counts::Counts,
    run::{command, on_path, quietly, target_dir},
    setup, test,
};

/// Source of the program with `nntrace.h`, from the workspace's root.
const SOURCE: &str = "xtask/src/instructions/marks.c";
/// Function that counts, in this program and in that of the Rust paths.
const COUNTED: &str = "--toggle-collect=*counted*";

/// Options of the count.
#[derive(Args)]
pub struct Instructions {
    /// Take the counts as those to compare with: xtask/src/instructions/counts.json
    #[arg(long)]
    bless: bool,
}

/// Way of a mark that is counted.
struct HotPath {
    name: &'static str,
    /// How often it is run in the longer run, and in the shorter one, whose difference is counted.
    sizes: [u64; 2],
    /// Units in each of them: two marks in a section.
    units: u64,
    work: Work,
}

/// Program that runs it.
enum Work {
    /// The C program, with this word.
    Header(&'static str),
    /// The Rust program, with this word.
    Mark(&'static str),
    /// The Rust program, which accounts a lane.
    Collector,
    /// A replay of a trace with this many lines.
    Replay(fn(&mut BufWriter<File>, u64) -> std::io::Result<()>),
}

/// All hot paths.
const HOT_PATHS: [HotPath; 7] = [
    HotPath {
        name: "nntrace.h, a pair that nobody listens to",
        sizes: [8, 4],
        units: 1,
        work: Work::Header("off"),
    },
    HotPath {
        name: "nntrace.h, a mark on the express lane",
        sizes: [8, 4],
        units: 2,
        work: Work::Header("express"),
    },
    HotPath {
        name: "Rust mark!, a pair that nobody listens to",
        sizes: [8, 4],
        units: 1,
        work: Work::Mark("off"),
    },
    HotPath {
        name: "Rust mark!, a mark on the express lane",
        sizes: [8, 4],
        units: 2,
        work: Work::Mark("express"),
    },
    HotPath {
        name: "collector, a mark on the express lane",
        sizes: [64, 32],
        units: 2,
        work: Work::Collector,
    },
    HotPath {
        name: "replay, a line of a mark",
        sizes: [32, 16],
        units: 1,
        work: Work::Replay(trace_text::write_marks),
    },
    HotPath {
        name: "replay, a line of a power event",
        sizes: [32, 16],
        units: 1,
        work: Work::Replay(trace_text::write_idle),
    },
];
/// Unit of sizes.
const THOUSAND: u64 = 1_024;

impl Instructions {
    /// Builds everything, counts, and compares or takes over the counts.
    pub fn run(&self) -> Result<()> {
        setup::build()?;
        // The build of the tests, which is there already where those ran.
        test::build()?;
        if !on_path("valgrind") {
            apt::install(&["valgrind"])?;
        }
        let program = compile(SOURCE, "hot-path-marks", &["-I", "nntrace-common/include"])?;
        // What runs at the same time must not depend on the number of CPUs.
        let cpu = machine::allowed_cpus()?.into_iter().next().context("this program may use no CPU")?;
        machine::pin(cpu)?;

        let begin = Instant::now();
        let mut counts = Counts::default();
        for path in &HOT_PATHS {
            let count = path.count(&program)?;
            println!("{count:>10.1}  {}", path.name);
            counts.add(path.name, count, path.tolerance());
        }
        println!("counted    in {} s", begin.elapsed().as_secs());
        if self.bless { counts.bless() } else { counts.compare() }
    }
}

impl HotPath {
    /// Counts the instructions of a unit: those of the longer run that the shorter one has not.
    fn count(&self, program: &Path) -> Result<f64> {
        let [long, short] = self.sizes.map(|size| size * THOUSAND);
        let context = || format!("the instructions of `{}` cannot be counted", self.name);
        let difference = self.run(program, long).with_context(context)?
            - self.run(program, short).with_context(context)?;
        Ok(difference / ((long - short) * self.units) as f64)
    }

    /// Returns the part by which builds of the same source differ, in %. Where code spans code generation units, inlining
    /// depends on how the compiler partitions it, which incremental builds do again (seen: 4 %).
    const fn tolerance(&self) -> f64 {
        match self.work {
            Work::Header(_) | Work::Mark(_) => 3.0,
            Work::Collector | Work::Replay(_) => 10.0,
        }
    }

    /// Returns the instructions of one run.
    fn run(&self, program: &Path, size: u64) -> Result<f64> {
        match &self.work {
            Work::Header(word) => collected(COUNTED, command(program).arg(word).arg(size.to_string())),
            Work::Mark(word) => rust(word, size),
            Work::Collector => rust("lane", size),
            Work::Replay(write) => {
                let trace = target_dir()?.join("bench/hot-path.trace.txt");
                let written = File::create(&trace).and_then(|file| {
                    let mut out = BufWriter::new(file);
                    write(&mut out, size)?;
                    out.flush()
                });
                written.with_context(|| format!("cannot write {}", trace.display()))?;
                let replay = collected(
                    "--collect-atstart=yes",
                    command(built("nntrace-bpf")?).arg("replay").arg(&trace).arg("--json"),
                );
                // What is left of it is in nobody's way.
                let _ = fs::remove_file(&trace);
                replay
            }
        }
    }
}

/// Returns the instructions of the Rust program with a word.
fn rust(word: &str, size: u64) -> Result<f64> {
    collected(COUNTED, command(built("nntrace-hot-paths")?).arg(word).arg(size.to_string()))
}

/// Returns the path of a program.
fn built(program: &str) -> Result<PathBuf> {
    Ok(target_dir()?.join("debug").join(program))
}

/// Runs a program under callgrind; returns the instructions of all of its threads that were counted.
fn collected(what: &str, program: &Command) -> Result<f64> {
    let log: PathBuf = target_dir()?.join("bench/callgrind.log");
    let mut valgrind = command("valgrind");
    valgrind.args(["--tool=callgrind", what, "--callgrind-out-file=/dev/null"]);
    valgrind.arg(format!("--log-file={}", log.display()));
    quietly(valgrind.arg(program.get_program()).args(program.get_args()))?;
    let text = fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    match instructions(&text) {
        Some(count) if count > 0.0 => Ok(count),
        _ => bail!("callgrind has counted nothing; it says:\n{text}"),
    }
}

/// Parses the sum at the end of callgrind's messages.
fn instructions(log: &str) -> Option<f64> {
    log.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_log_is_found() {
        let log = "==7== Events    : Ir\n==7== Collected : 102421\n==7== \n==7== I   refs:      102,421\n";
        assert_eq!(instructions(log), Some(102_421.0));
        assert_eq!(instructions("==7== Collected : \n"), None);
    }
}
