//! The window has the requested length, and marks, power states and scheduling begin and end with it.

use std::process::Command;

use anyhow::{Result, ensure};
use nntrace_tests::{
    child::Child,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

const LENGTH_NS: u64 = 100_000_000;
const FLOOD: &str = env!("CARGO_BIN_EXE_mark-flood");
/// Arguments for one thread that writes marks before, within and after the window.
const ENDLESS: [&str; 5] = ["--threads", "1", "--until-stdin", "--pause-us", "200"];

fn check(snapshot: &Snapshot, pid: u32) -> Result<()> {
    ensure!(snapshot.window.length_ns() == LENGTH_NS, "{:?}", snapshot.window);
    // The thread is in its outer section nearly all the time, and cannot be in it for longer than that.
    let time = snapshot.phase(pid, "LR_PE").map_or(0, |row| row.total_ns);
    ensure!(time > 0 && time <= LENGTH_NS, "{time} ns in a window of {LENGTH_NS} ns");
    for thread in &snapshot.threads {
        let states = thread.on_cpu_ns
            + thread.runnable_ns
            + thread.sleeping_ns
            + thread.uninterruptible_ns
            + thread.unknown_ns;
        ensure!(states == LENGTH_NS, "{thread:?}");
    }
    Ok(())
}

#[test]
fn of_a_process_that_runs_only_the_time_asked_for_counts() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut command = Command::new(FLOOD);
    let mut flood = Child::start(command.args(ENDLESS))?;
    flood.lines(1)?;
    let pid = flood.pid();
    for extra in [&[][..], &["--level", "sched"], &["--verify"]] {
        let run =
            Profiler::new()?.args(["--duration", "100ms", "--pid", &pid.to_string()]).args(extra).run()?;
        let Run { snapshot, ended } = run;
        ended.expect_code(0)?;
        check(&snapshot, pid)?;
    }
    flood.send_line("end")?;
    flood.wait()?.expect_code(0)?;
    Ok(())
}

#[test]
fn of_a_command_all_counts_from_its_first_mark_to_the_end_of_the_window() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let command: Vec<&str> = [FLOOD].into_iter().chain(ENDLESS).collect();
    let Run { snapshot, .. } = Profiler::new()?.args(["--duration", "100ms"]).launch(command)?;
    let pid = *snapshot.pids().first().unwrap_or(&0);
    check(&snapshot, pid)?;
    // No marks came before: no end lacks its begin. The section cut by the window is open.
    ensure!(!snapshot.odd_marks().contains_key("unmatched_end"), "{:?}", snapshot.odd_marks());
    Ok(())
}
