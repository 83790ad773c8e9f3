//! Programs that confine themselves by seccomp: a profiler never does them harm, and counts their marks.

use std::{process::Command, thread, time::Duration};

use anyhow::{Result, bail, ensure};
use nntrace_tests::{
    child::Child,
    express::sections,
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
};

/// Time within which a profiler surely has looked again at whether a process is confined, which it does once a second.
const NOTICED: Duration = Duration::from_secs(3);

/// Confines the program in a way and at a time, see `express-confined.c`, and profiles it from before its first mark on.
fn check(program: &Program, how: &str, when: &str) -> Result<()> {
    let mut child = Child::start(Command::new(program.path()).args([how, when]))?;
    child.lines(1)?;
    let pid = child.pid().to_string();
    // A few milliseconds of marks as fast as can be, on a machine that may be busy.
    let profiler = Profiler::new()?.args(["--pid", &pid, "--ring-size", "8192"]).attach()?;
    child.send_line("go on")?;
    if when == "noticed" {
        child.lines(2)?;
        thread::sleep(NOTICED);
        child.send_line("go on")?;
    }
    let ended = child.wait()?.expect_code(0)?;
    let Some(Ok(written)) = ended.text().lines().last().map(str::parse::<u64>) else {
        bail!("the thread was killed: {ended:?}")
    };
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    ensure!(sections(&snapshot, "work") == written, "{:?} of {written}", snapshot.functions);
    ensure!(snapshot.odd_marks().is_empty(), "{:?}", snapshot.diagnostics);
    let used = snapshot.source.express.map_or(0, |used| used.marks);
    ensure!((used > 0) == ["later", "noticed"].contains(&when), "{used} marks by the lane");
    Ok(())
}

fn check_all(how: &str, times: &[&str]) -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-confined.c")?;
    let failures = times
        .iter()
        .filter_map(|when| check(&program, how, when).err().map(|error| format!("{how} {when}: {error:#}")));
    let failures: Vec<String> = failures.collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn a_thread_that_is_refused_a_lane_takes_probes() -> Result<()> {
    check_all("refused", &["first", "thread", "later"])
}

#[test]
fn a_thread_that_would_be_killed_for_a_lane_takes_probes() -> Result<()> {
    check_all("killed", &["first", "thread", "later"])
}

/// Between its confinement and the profiler's next look the question whether it is confined would be deadly.
#[test]
fn a_thread_that_may_do_next_to_nothing_lives_on() -> Result<()> {
    check_all("listed", &["first", "thread", "noticed"])
}

#[test]
fn a_strictly_confined_thread_lives_on() -> Result<()> {
    check_all("strict", &["first", "thread", "noticed"])
}
