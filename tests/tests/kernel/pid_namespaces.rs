//! Inside of a PID namespace of its own, as a container has, the program counts the processes of that namespace.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{binaries, child::Child, live, results::Results as _, snapshot};

/// Marks of one section.
const MARKS: &str = "'B|1|[NN_LR_PE]Section' 'E|1'";

/// Runs a script of the shell in a new PID namespace with its own `/proc`; `$profiler` and `$marks` are programs.
fn inside(script: &str) -> Result<Command> {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script]);
    command.env("profiler", binaries::profiler()?).env("marks", env!("CARGO_BIN_EXE_mark-raw"));
    Ok(command)
}

/// Number of sections, by process.
type Counts = Vec<(u32, u64)>;

/// Ids in a new namespace are below this one.
const FEW: u32 = 200;

/// Counts in the snapshot that a script of [`inside`] writes; `None` where the kernel cannot tell.
fn counts_inside(script: &str) -> Result<Option<Counts>> {
    if !live::has_btf() {
        let refused = Child::run(&mut inside(script)?)?.stderr;
        ensure!(refused.contains("docker run --pid=host"), "{refused}");
        return Ok(None);
    }
    let ended = Child::run(&mut inside(script)?)?.expect_code(0)?;
    let snapshot = snapshot::read(&ended.stdout).with_context(|| ended.stderr)?;
    Ok(Some(snapshot.pids().into_iter().map(|pid| (pid, snapshot.count(pid, "LR_PE"))).collect()))
}

#[test]
fn commands_and_their_children_are_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let command = format!("\"$profiler\" --json -- \"$marks\" {MARKS}");
    let Some(counted) = counts_inside(&command)? else { return Ok(()) };
    // The shell is the first process of the namespace, or has become the profiler; each file takes a process to parse.
    ensure!(matches!(counted[..], [(pid, 1)] if pid < FEW), "{counted:?}");
    let children = format!(
        "\"$profiler\" --json --lib \"$marks\" -- sh -c '\"$marks\" {0}; \"$marks\" {0}; true'",
        MARKS.replace('\'', "\"")
    );
    let counted = counts_inside(&children)?.unwrap_or_default();
    ensure!(matches!(counted[..], [(one, 1), (two, 1)] if one < FEW && two < FEW), "{counted:?}");
    Ok(())
}

#[test]
fn a_process_of_the_host_with_the_same_number_is_neither_counted_nor_stopped() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // It marks all the time.
    let mut flood = Command::new(env!("CARGO_BIN_EXE_mark-flood"));
    let host = Child::start(flood.args(["--seconds", "600", "--threads", "1", "--pause-us", "1000"]))?;
    let number = host.pid();
    let script = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid; {{ sleep 2; \"$marks\" {MARKS}; }} & \"$profiler\" --json --lib \"$marks\" --pid $!",
        number - 1
    );
    let Some(counted) = counts_inside(&script)? else { return Ok(()) };
    let held = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid; \"$profiler\" --json -- \"$marks\" {MARKS}",
        number - 1
    );
    let launched = counts_inside(&held)?.unwrap_or_default();
    let stat = fs::read_to_string(format!("/proc/{number}/stat"))?;
    ensure!(!stat.contains(") T "), "the process of the host was stopped: {stat}");
    ensure!(counted.iter().map(|(_, count)| count).sum::<u64>() == 1, "{counted:?}");
    ensure!(launched.iter().map(|(_, count)| count).sum::<u64>() == 1, "{launched:?}");
    Ok(())
}

#[test]
fn a_proc_of_another_namespace_is_refused() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork"]).arg(binaries::profiler()?).args(["--duration", "1s", "--", "true"]);
    let refused = Child::run(&mut command)?.expect_code(1)?.stderr;
    ensure!(refused.contains("/proc shows the processes of another PID namespace"), "{refused}");
    Ok(())
}
