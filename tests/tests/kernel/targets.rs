//! Selection of processes: those asked for and their families are traced, and no others.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::Child,
    live, native,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Starts a flood that waits for a line before it writes this many marks.
fn waiting_flood(program: &Path, marks: u64) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(["--threads", "2", "--wait-stdin", "--marks", &marks.to_string()]);
    let child = Child::start(&mut command)?;
    child.lines(1)?;
    Ok(child)
}

/// Lets them write, and returns the number of rounds each wrote.
fn release(mut floods: Vec<Child>) -> Result<Vec<u64>> {
    for flood in &mut floods {
        flood.send_line("go on")?;
    }
    let rounds = floods.into_iter().map(|flood| {
        let text = flood.wait()?.expect_code(0)?.text();
        let done = text.lines().find_map(|line| line.strip_prefix("done "));
        done.with_context(|| format!("no number in {text}"))?.parse().context("no number")
    });
    rounds.collect()
}

#[test]
fn of_two_processes_of_one_program_only_the_asked_one_is_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Path::new(env!("CARGO_BIN_EXE_mark-flood"));
    let (asked, other) = (waiting_flood(program, 4_000)?, waiting_flood(program, 12_000)?);
    let pid = asked.pid();
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    let rounds = release(vec![other, asked])?;
    assert_eq!(rounds, [3_000, 1_000]);
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    assert_eq!(snapshot.pids(), [pid]);
    assert_eq!(snapshot.count(pid, "LR_PE"), 1_000);
    assert_eq!(snapshot.odd_marks(), [].into());
    Ok(())
}

#[test]
fn processes_are_found_by_name_though_they_share_their_program() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    // One file by two names: a probe in it is in both. Copied, as a link cannot leave its file system.
    let folder = tempfile::tempdir()?;
    let (asked_file, other_file) = (folder.path().join("nntrace-asked"), folder.path().join("nntrace-other"));
    fs::copy(env!("CARGO_BIN_EXE_mark-flood"), &asked_file)?;
    fs::hard_link(&asked_file, &other_file)?;
    let floods = vec![
        waiting_flood(&asked_file, 4_000)?,
        waiting_flood(&other_file, 8_000)?,
        waiting_flood(&asked_file, 12_000)?,
    ];
    let pids: Vec<u32> = floods.iter().map(Child::pid).collect();
    let profiler = Profiler::new()?.args(["--comm", "nntrace-as*"]).attach()?;
    release(floods)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    let counted: BTreeMap<u32, u64> =
        snapshot.pids().into_iter().map(|pid| (pid, snapshot.count(pid, "LR_PE"))).collect();
    assert_eq!(counted, [(pids[0], 1_000), (pids[2], 3_000)].into());
    assert!(snapshot.phases.iter().all(|row| row.comm == "nntrace-asked"), "{:?}", snapshot.phases);
    Ok(())
}

/// Returns the sections by process in the family's output.
fn told(text: &str) -> BTreeMap<u32, u64> {
    let pair = |line: &str| {
        let (pid, sections) = line.split_once(' ')?;
        Some((pid.parse().ok()?, sections.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// Returns the counted sections by process.
fn counted(snapshot: &Snapshot) -> BTreeMap<u32, u64> {
    snapshot.pids().into_iter().map(|pid| (pid, snapshot.count(pid, "LA_PE"))).collect()
}

#[test]
fn forked_children_are_traced_from_their_first_mark_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for _ in 0..5 {
        family_is_traced("fork")?;
        family_is_traced("exec")?;
    }
    Ok(())
}

/// Does not hold on Linux 6.18 with a probe on the leading nop.
#[test]
fn a_process_that_has_marked_can_fork_and_both_live_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    family_is_traced("late-fork")
}

fn family_is_traced(how: &str) -> Result<()> {
    let command = [env!("CARGO_BIN_EXE_mark-family"), how, "--generations", "3", "--sections", "5"];
    let Run { snapshot, ended } = Profiler::new()?.launch(command)?;
    let told = told(&ended.expect_code(0)?.text());
    assert_eq!(told.values().sum::<u64>(), 5 + 6 + 7 + 8, "{how}: {told:?}");
    assert_eq!(counted(&snapshot), told, "{how}");
    assert_eq!(snapshot.odd_marks(), [].into(), "{how}");
    Ok(())
}

#[test]
fn children_that_were_there_before_are_traced_with_their_parent() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut command = Command::new(env!("CARGO_BIN_EXE_mark-family"));
    command.args(["exec", "--generations", "2", "--wait-stdin"]);
    let mut family = Child::start(&mut command)?;
    assert_eq!(family.lines(1)?, ["ready"]);
    let profiler = Profiler::new()?.args(["--pid", &family.pid().to_string()]).attach()?;
    family.send_line("go on")?;
    let pid = family.pid();
    let told = told(&family.wait()?.expect_code(0)?.text());
    assert_eq!((told.len(), told.get(&pid)), (3, Some(&5)), "{told:?}");
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    assert_eq!(counted(&snapshot), told);
    Ok(())
}

#[test]
fn a_process_ends_with_its_last_thread() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = native::Program::build("main-leaves.c")?;
    // The profiler looks at its targets each second: the main thread is gone at the first look.
    let Run { snapshot, ended } = Profiler::new()?.launch([program.path().as_os_str(), "25".as_ref()])?;
    ended.expect_code(0)?;
    let pid = *snapshot.pids().first().context("no process has results")?;
    assert_eq!(snapshot.count(pid, "LR_PE"), 2_500);

    // It can be attached to when it has only other threads.
    let mut command = Command::new(program.path());
    let child = Child::start(command.arg("40"))?;
    child.lines(1)?;
    let pid = child.pid();
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    child.wait()?.expect_code(0)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    assert_eq!(snapshot.pids(), [pid]);
    let count = snapshot.count(pid, "LR_PE");
    assert!(count >= 1_500 && count.is_multiple_of(100), "{count}");
    Ok(())
}
