//! No lane does harm to a program that is short of something, or in an unusual state: it goes without one, and its marks count.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::{Child, Ended},
    express::sections,
    live,
    native::{Program, compile, source},
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Runs a way of `lane-harms.c` under the profiler; returns the numbers that it has printed.
fn launch(program: &Path, words: &[&Path]) -> Result<(Snapshot, Vec<u64>)> {
    let words = [&[program], words].concat();
    let Run { snapshot, ended } = Profiler::new()?.args(["--ring-size", "65536"]).launch(words)?;
    let ended = ended.expect_code(0)?;
    ensure!(snapshot.odd_marks().is_empty(), "{:?}", snapshot.diagnostics);
    Ok((snapshot, numbers(&ended)?))
}

/// Returns the numbers that a program has printed, a line each.
fn numbers(ended: &Ended) -> Result<Vec<u64>> {
    let text = ended.text();
    text.lines().map(|line| line.parse().with_context(|| format!("no number: {line}"))).collect()
}

/// Returns the marks that came by lanes.
fn by_lane(snapshot: &Snapshot) -> u64 {
    snapshot.source.express.map_or(0, |used| used.marks)
}

#[test]
fn a_program_that_may_not_read_the_counter_lives_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("lane-harms.c")?;
    let (snapshot, written) = launch(program.path(), &[Path::new("counter")])?;
    assert_eq!([sections(&snapshot, "work")], written[..]);
    assert_eq!(by_lane(&snapshot), 0);
    Ok(())
}

#[test]
fn a_program_that_locks_its_memory_may_lock_as_much_as_without_lanes() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("lane-harms.c")?;
    let (snapshot, written) = launch(program.path(), &[Path::new("locked")])?;
    assert_eq!([sections(&snapshot, "work")], written[..]);
    assert_eq!(by_lane(&snapshot), 0);
    Ok(())
}

#[test]
fn a_child_that_was_forked_in_the_middle_of_a_mark_lives_on() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("lane-harms.c")?;
    let Run { snapshot, ended } =
        Profiler::new()?.args(["--ring-size", "65536"]).launch([program.path(), Path::new("forks")])?;
    let written = numbers(&ended.expect_code(0)?)?;
    ensure!(by_lane(&snapshot) > 0, "{:?}", snapshot.notes);
    assert_eq!(sections(&snapshot, "child"), written[1]);
    // The parent's, and of each child the one that was interrupted, if that was not in the ring already.
    let work = sections(&snapshot, "work");
    assert!((written[0]..=written[0] + 100).contains(&work), "{work} of {written:?}");
    assert_eq!(snapshot.source.express.map(|used| (used.lost, used.damaged)), Some((0, 0)));
    Ok(())
}

#[test]
fn a_mark_in_a_signal_handler_takes_a_kilobyte_of_the_stack_at_most() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("lane-harms");
    // The loader that finds a function at its first call takes kilobytes.
    compile(&["cc", "-std=c99", "-O2", "-Wl,-z,lazy"], &[&source("lane-harms.c")], &program)?;
    let (snapshot, written) = launch(&program, &[Path::new("stack")])?;
    assert_eq!(["handler", "plain"].map(|name| sections(&snapshot, name)), [written[0]; 2]);
    ensure!(by_lane(&snapshot) > 0, "{:?}", snapshot.notes);
    assert!(written[1] <= 1024, "{} bytes", written[1]);
    Ok(())
}

#[test]
fn what_a_library_has_is_gone_with_it() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("plug.so");
    compile(&["cc", "-std=c99", "-O2", "-shared", "-fPIC"], &[&source("lane-plug.c")], &library)?;
    let program = Program::build("lane-harms.c")?;
    let (snapshot, written) = launch(program.path(), &[Path::new("load"), &library])?;
    assert_eq!(written, [60_000, 0]);
    assert_eq!(sections(&snapshot, "work"), 60_000);
    Ok(())
}

/// Memory cgroup, which is removed with this.
struct Group(PathBuf);

impl Group {
    /// Makes a group with this limit; `None` where the kernel lets us make no group.
    fn with_limit(bytes: u64) -> Result<Option<Self>> {
        let name = format!("nntrace-tests-{}", std::process::id());
        for (root, limit) in [("memory", "memory.limit_in_bytes"), ("", "memory.max")] {
            let folder = Path::new("/sys/fs/cgroup").join(root).join(&name);
            if folder.parent().is_some_and(|root| root.join("cgroup.procs").exists())
                && fs::create_dir(&folder).is_ok()
            {
                let group = Self(folder);
                if group.0.join(limit).exists() {
                    fs::write(group.0.join(limit), bytes.to_string())?;
                    return Ok(Some(group));
                }
            }
        }
        Ok(None)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What is left of it does no harm.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_program_of_little_memory_is_not_killed_for_lanes() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(group) = Group::with_limit(24 << 20)? else {
        eprintln!("skipped: there is no memory cgroup to be made here");
        return Ok(());
    };
    let program = Program::build("lane-harms.c")?;
    let mut child = Child::start(Command::new(program.path()).arg("crowd"))?;
    child.lines(1)?;
    fs::write(group.0.join("cgroup.procs"), child.pid().to_string())?;
    let pid = child.pid().to_string();
    let profiler = Profiler::new()?.args(["--pid", &pid, "--ring-size", "65536"]).attach()?;
    child.send_line("go on")?;
    let ended = child.wait()?.expect_code(0)?;
    let written: u64 = ended.text().lines().last().context("a number")?.parse()?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    // The kernel programs' totals: functions are counted by records, and a flood may lose some.
    assert_eq!(snapshot.counts(pid.parse()?).get("LR_PE"), Some(&written), "{:?}", snapshot.loss);
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    assert_eq!(by_lane(&snapshot), 0);
    Ok(())
}
