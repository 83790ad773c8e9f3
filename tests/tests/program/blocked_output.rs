//! A command is not stopped for longer than it takes to search its libraries, even when nobody reads our output, or when
//! we are stopped ourselves.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_tests::{binaries, c, live, wait};

/// Rounds of the command: each stops it several times.
const ROUNDS: &str = "40";

/// Runs the profiler on a command that loads libraries, with these options; `disturb` is called once it does. Its output
/// goes to a pipe that is not read before the command has ended.
fn run(
    options: &[&str],
    disturb: impl FnOnce(Pid) -> Result<()>,
    repair: impl FnOnce(Pid) -> Result<()>,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "loads-libraries.c")?;
    let done = folder.path().join("done");
    let mut profiler = Command::new(binaries::profiler()?);
    profiler.args(options).arg("--").arg(&program).arg(ROUNDS).arg(&done);
    profiler.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let profiler = profiler.spawn()?;
    let pid = Pid::from_raw(i32::try_from(profiler.id())?);
    wait::until("the command", || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        // Held before its first instruction, it has us as its tracer.
        let is_it = |child: &&str| {
            let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            status.starts_with("Name:\tloads-lib") && status.contains("TracerPid:\t0\n")
        };
        Ok(children.split_whitespace().find(is_it).map(str::to_owned))
    })?;
    thread::sleep(Duration::from_millis(300));
    disturb(pid)?;
    let ended = wait::until("the end of the command", || {
        Ok(fs::read_to_string(&done).ok().filter(|text| !text.is_empty()))
    });
    repair(pid)?;
    let output = profiler.wait_with_output()?;
    ended.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn a_command_runs_on_while_nobody_reads_the_output() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    run(&["-i", "10ms"], |_| Ok(()), |_| Ok(()))
}

#[test]
fn a_command_runs_on_while_the_profiler_is_stopped() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for signal in [Signal::SIGTSTP, Signal::SIGSTOP] {
        run(&["--json"], |pid| Ok(kill(pid, signal)?), |pid| Ok(kill(pid, Signal::SIGCONT)?))?;
    }
    Ok(())
}
