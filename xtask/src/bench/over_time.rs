//! Memory and CPU time of the profiler as a run with the example network goes on: both are to stay what they are.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::{
    bench::{
        child::Running,
        process::{cpu_seconds, megabytes},
        release,
        table::Table,
    },
    run::command,
};

/// Moments after the start, s: CPU time is that of the five seconds before each.
const MOMENTS: [u32; 2] = [10, 60];
/// Seconds before a moment in which CPU time is counted.
const BEFORE: u32 = 5;
/// Largest memory, MB.
const GOAL_MEGABYTES: f64 = 45.0;
/// Largest snapshot, KB.
const GOAL_SNAPSHOT: f64 = 256.0;
/// Forms of results: name, arguments, whether it is the screen, and the largest CPU time, % of one CPU.
const FORMS: [(&str, &[&str], bool, f64); 3] =
    [("text", &[], false, 1.0), ("--json", &["--json=FILE"], false, 1.0), ("the screen", &[], true, 2.0)];

/// Measures one run in each form.
pub fn measure() -> Result<Table> {
    let mut table = Table::new("profiler over time, with the example network");
    for (form, args, is_screen, goal) in FORMS {
        let file = std::env::temp_dir().join(format!("nntrace-bench-{}.json", std::process::id()));
        let args: Vec<String> = args.iter().map(|arg| arg.replace("FILE", &file.to_string_lossy())).collect();
        let run = start(&args, is_screen)?;
        let pid = if is_screen { child_of(run.pid())? } else { run.pid() };
        let begin = Instant::now();
        let wait_until = |second: u32| {
            thread::sleep(Duration::from_secs(second.into()).saturating_sub(begin.elapsed()));
        };
        for moment in MOMENTS {
            wait_until(moment - BEFORE);
            let before = cpu_seconds(pid)?;
            wait_until(moment);
            let percent = (cpu_seconds(pid)? - before) / f64::from(BEFORE) * 100.0;
            table.row(&format!("{form}: CPU before second {moment}, % of one CPU"), &[percent]).at_most(goal);
            let memory = megabytes(pid, "VmRSS")?;
            table.row(&format!("{form}: memory at second {moment}, MB"), &[memory]).at_most(GOAL_MEGABYTES);
        }
        run.end(Signal::SIGTERM)?;
        if let Ok(written) = fs::metadata(&file) {
            table.row(&format!("{form}: snapshot, KB"), &[written.len() as f64 / 1e3]).at_most(GOAL_SNAPSHOT);
            fs::remove_file(&file)?;
        }
    }
    table.note("CPU: utime and stime of the process; memory: VmRSS, in MB of 10^6 bytes");
    table.note("`cargo xtask soak` checks memory for any length of time");
    Ok(table)
}

/// Starts the profiler with the network; for the screen, on a terminal of its own.
fn start(args: &[String], is_screen: bool) -> Result<Running> {
    let (profiler, network) = (release("nntrace-bpf")?, release("nntrace-workload")?);
    let seconds = (MOMENTS[1] + 60).to_string();
    let load = ["--quiet", "--seconds", &seconds];
    if is_screen {
        let words = format!("exec {} -- {} {}", profiler.display(), network.display(), load.join(" "));
        let mut terminal = command("script");
        terminal.args(["-qefc", &words, "/dev/null"]);
        return Running::start_quietly(&mut terminal);
    }
    let mut profiler = command(profiler);
    profiler.args(args).arg("--").arg(network).args(load);
    Running::start_quietly(&mut profiler)
}

/// Returns the child of a process that has one.
fn child_of(pid: u32) -> Result<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    for _ in 0..100 {
        let children = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
        thread::sleep(Duration::from_millis(20));
    }
    anyhow::bail!("process {pid} has no child: is `script` installed?")
}
