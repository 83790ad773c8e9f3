//! Lines that the kernel programs log: nothing is left of them while the log is off, and a flood does not flood it.

use std::{collections::BTreeSet, process::Command};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    bpf::{self, Objects},
    child::Child,
    live,
    profiler::Profiler,
    results::Results as _,
};

/// The programs of a profiler at work that refer to the ring of the log, and the instructions of all its programs.
fn users_of_the_log(arguments: &[&str]) -> Result<(BTreeSet<String>, usize)> {
    let target = Child::start(Command::new(env!("CARGO_BIN_EXE_mark-family")).args([
        "exec",
        "--generations",
        "0",
        "--wait-stdin",
    ]))?;
    target.lines(1)?;
    let pid = target.pid().to_string();
    let profiler = Profiler::new()?.args(["--pid", &pid, "--level", "sched"]).args(arguments).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    let mut ring = None;
    for map in aya::maps::loaded_maps().filter(bpf::is_not_gone) {
        let map = map?;
        if held.maps.contains(&map.id()) && map.name_as_str() == Some("AYA_LOGS") {
            ring = Some(map.id());
        }
    }
    let found = bpf::programs_that_use(&held, ring.context("the profiler has no ring for its log")?)?;
    // Without its target the profiler ends.
    drop(target);
    profiler.ended()?;
    Ok(found)
}

#[test]
fn programs_do_not_know_the_log_while_it_is_off() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (users, silent) = users_of_the_log(&[])?;
    assert_eq!(users, BTreeSet::new(), "they can log though the log is off");
    let (users, talking) = users_of_the_log(&["-vv"])?;
    // The kernel keeps fifteen bytes of a name; which program takes marks depends on it.
    for program in ["mark_buf", "process_fork", "process_exec", "process_exit", "cpu_idle"] {
        let logs = users.iter().any(|user| user.starts_with(program));
        assert!(logs, "{program} is not among those that log: {users:?}");
    }
    println!("instructions of all programs: {silent} with the log off, {talking} with -vv");
    assert!(silent < talking);
    Ok(())
}

#[test]
fn a_flood_of_odd_marks_is_logged_by_a_few_lines_that_say_how_many_there_were() -> Result<()> {
    const MARKS: u64 = 1_000;
    let Some(_live) = live::enter()? else { return Ok(()) };
    // Those of a thread without a mark of its own are none.
    let own = [env!("CARGO_BIN_EXE_mark-raw"), "B|1|[NN_LR_PE]run", "E|1"];
    let command = own.into_iter().chain((0..MARKS).map(|_| "E|1"));
    let run = Profiler::new()?.args(["-v"]).launch(command)?;
    assert_eq!(run.snapshot.odd_marks(), [("unmatched_end", MARKS)].into());
    let log = &run.ended.stderr;
    let lines =
        log.lines().filter(|line| line.contains("kernel: thread") && line.ends_with(": unmatched_end"));
    let left_out = log.lines().filter_map(|line| {
        let (_, line) = line.split_once("kernel: ")?;
        line.strip_suffix(" lines were left out: unmatched_end")?.parse::<u64>().ok()
    });
    let (lines, left_out) = (lines.count() as u64, left_out.sum::<u64>());
    assert_eq!(lines + left_out, MARKS, "{log}");
    assert!((1..=100).contains(&lines), "{lines} lines:\n{log}");
    Ok(())
}

#[test]
fn what_is_traced_is_logged_by_both_sides() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let logged = |profiler: Profiler| -> Result<String> {
        Ok(profiler.launch([env!("CARGO_BIN_EXE_mark-raw"), "B|1|x", "E|1"])?.ended.stderr)
    };
    let log = logged(Profiler::new()?.env("NNTRACE_LOG", "debug"))?;
    for part in ["(mark-raw) is a target", "is on tracing_mark_write in ", "the window begins at"] {
        assert!(log.contains(part), "{part}:\n{log}");
    }
    assert!(log.contains("debug: kernel: thread "), "{log}");
    // The option wins.
    let log = logged(Profiler::new()?.args(["-v"]).env("NNTRACE_LOG", "off"))?;
    assert!(log.contains("info: ") && !log.contains("debug: "), "{log}");
    assert_eq!(logged(Profiler::new()?)?, "");
    Ok(())
}

#[test]
fn a_level_that_there_is_not_is_an_error_of_usage() -> Result<()> {
    let mut profiler = Profiler::new()?.args(["-d", "1"]).env("NNTRACE_LOG", "loud");
    let ended = Child::start(profiler.command())?.wait()?.expect_code(2)?;
    assert!(ended.stderr.contains("NNTRACE_LOG is \"loud\""), "{}", ended.stderr);
    Ok(())
}
