//! Calls of drivers: each `ioctl` on their devices is a section of the driver layer, inside of what the thread does.
//!
//! The devices are nodes of `/dev/zero`, which answers every request with an error: the system call is the same.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use nix::sys::{
    signal::Signal,
    stat::{Mode, SFlag, makedev, mknod},
};
use nntrace_common::layer::Tag;
use nntrace_tests::{
    bpf::Objects,
    child::Child,
    live,
    native::Program,
    profiler::Profiler,
    results::{self, Results as _},
    wait,
};
use nntrace_user::report::snapshot::Snapshot;

const ROUNDS: u64 = 50;
const THREADS: u64 = 2;

/// Node of a device, removed with it.
struct Node(PathBuf);

impl Node {
    fn new(name: &str) -> Result<Self> {
        let path = PathBuf::from(format!("/dev/{name}-{}", std::process::id()));
        mknod(&path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 5))
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("the path is text")
    }

    fn name(&self) -> Result<&str> {
        self.0.file_name().and_then(|name| name.to_str()).context("the name is text")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may be gone.
        let _ = fs::remove_file(&self.0);
    }
}

/// Checks that every call is there, inside of its execution, with about the time that the program measured.
fn check(snapshot: &Snapshot, device: &Node, output: &str) -> Result<()> {
    let pids = snapshot.pids();
    assert_eq!(pids.len(), 1, "{pids:?}");
    let pid = pids[0];
    assert_eq!(snapshot.odd_marks(), [].into());
    let calls = snapshot.functions.iter().filter(|row| Tag::new(row.layer, row.phase).to_string() == "LD_PE");
    let mut calls: Vec<(&str, u64)> = calls.map(|row| (row.name.as_str(), row.count)).collect();
    calls.sort_unstable();
    let rounds = THREADS * ROUNDS;
    let name = device.name()?;
    let expected = [(format!("{name} 0x40106440"), 3 * rounds), (format!("{name} 0xc0046401"), rounds)];
    assert_eq!(calls, expected.each_ref().map(|(name, count)| (name.as_str(), *count)));
    assert_eq!(snapshot.counts(pid), [("LD_PE".to_owned(), 4 * rounds), ("LR_PE".to_owned(), rounds)].into());
    assert_eq!(
        snapshot.stack_counts(pid),
        [("LR_PE LD_PE".to_owned(), 4 * rounds), ("LR_PE".to_owned(), rounds)].into()
    );
    let total = |tag| snapshot.phase(pid, tag).map_or((0, 0), |row| (row.total_ns, row.exclusive_ns));
    let ((calls, own), (runs, runs_own)) = (total("LD_PE"), total("LR_PE"));
    assert_eq!((own, runs_own), (calls, runs - calls));
    // The process calls the driver itself: in the report it is the driver, not the CPU in its place.
    let report: BTreeMap<String, i64> = results::cells(&snapshot.reports[0].total_ns).collect();
    assert_eq!(
        (report.get("LD_PE"), report.get("LC_PE")),
        (Some(&i64::try_from(calls)?), None),
        "{report:?}"
    );
    let measured: u64 = output.trim().lines().last().context("no time")?.parse()?;
    assert!(calls > 0 && calls <= measured, "{calls} ns of {measured}");
    Ok(())
}

#[test]
fn calls_on_a_chosen_device_are_sections_of_the_driver() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("driver-calls.c")?;
    let device = Node::new("chosen")?;
    let path = program.path().to_str().context("the path is text")?;
    let run = Profiler::new()?.args(["--driver-calls", device.path()?]).launch([
        path,
        device.path()?,
        &ROUNDS.to_string(),
    ])?;
    check(&run.snapshot, &device, &run.ended.text())?;
    let notes = &run.snapshot.notes;
    assert!(
        notes.iter().any(|note| note.contains("each system call of any process takes about")),
        "{notes:?}"
    );
    run.ended.expect_code(0)?;
    Ok(())
}

#[test]
fn a_known_device_is_followed_while_a_target_has_it_open() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("driver-calls.c")?;
    let device = Node::new("ethosu")?;
    let mut target =
        Child::start(Command::new(program.path()).args([device.path()?, &ROUNDS.to_string(), "waiting"]))?;
    target.lines(1)?;
    let profiler = Child::start(Profiler::new()?.command().args([
        "--json-lines",
        "--interval",
        "50ms",
        "--pid",
        &target.pid().to_string(),
    ]))?;
    profiler.lines(1)?;
    let links = || Ok::<_, anyhow::Error>(Objects::held_by(profiler.pid())?.links);
    let with_device = links()?;
    target.send_line("go")?;
    target.lines(2)?;
    wait::until("the programs on system calls to go", || {
        Ok((links()?.len() + 2 == with_device.len()).then_some(()))
    })?;
    target.send_line("end")?;
    let output = target.wait()?.expect_code(0)?.text();
    profiler.signal(Signal::SIGINT)?;
    let ended = profiler.wait()?.expect_code(0)?;
    let text = ended.text();
    let last = text.lines().last().context("no snapshot")?;
    check(&nntrace_tests::snapshot::read(last.as_bytes())?, &device, &output)
}

#[test]
fn calls_are_left_alone_when_they_are_not_wanted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("driver-calls.c")?;
    let device = Node::new("ethosu")?;
    let mut target =
        Child::start(Command::new(program.path()).args([device.path()?, &ROUNDS.to_string(), "waiting"]))?;
    target.lines(1)?;
    let pid = target.pid();
    let profiler = Profiler::new()?.args(["--driver-calls", "off", "--pid", &pid.to_string()]).attach()?;
    target.send_line("go")?;
    target.lines(2)?;
    target.send_line("end")?;
    target.wait()?.expect_code(0)?;
    let run = profiler.finish()?;
    assert_eq!(run.snapshot.counts(pid), [("LR_PE".to_owned(), THREADS * ROUNDS)].into());
    Ok(())
}

#[test]
fn what_is_no_device_is_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--driver-calls", "/dev/shm"]).launch(["true"])?;
    let notes = &run.snapshot.notes;
    assert!(notes.iter().any(|note| note.contains("--driver-calls /dev/shm: no device")), "{notes:?}");
    Ok(())
}
