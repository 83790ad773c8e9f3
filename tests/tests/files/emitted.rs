//! Recordings that are written once more: under another live run they give the same processes, counts, stacks and causes,
//! and about the same times.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use nntrace_common::layer::{Layer, Phase};
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::{MarksSeen, PhaseRow, Snapshot};

/// Tries of what depends on nobody else's load.
const TRIES: u32 = 5;
/// Time by which a section may be longer or shorter than it was, ns: how late its end is against its begin, on a machine
/// with two CPUs that have other work.
const PER_SECTION: u64 = 1_000_000;
/// Part of its time, one in this many, by which a section may be longer or shorter as well.
const PART: u64 = 20;

/// Name, numbers and counts by function of an iteration.
type IterationCounts = (String, u64, u64, BTreeMap<String, u64>);

/// Results that do not depend on time.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    processes: Vec<OfProcess>,
    reports: usize,
    /// Iterations by name: those that ended, those open, and what is in them.
    iterations: Vec<IterationCounts>,
    /// Accounts: sections, and what is in them.
    accounts: BTreeMap<Option<String>, (u64, BTreeMap<String, u64>)>,
    /// Groups: sections by value and function.
    groups: BTreeMap<(String, String), u64>,
    hand_overs: Option<(u64, u64, u64)>,
    diagnostics: BTreeMap<String, u64>,
}

/// Results of a process that do not depend on time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OfProcess {
    phases: BTreeMap<String, u64>,
    stacks: BTreeMap<String, u64>,
    functions: BTreeMap<(Layer, Phase, String), u64>,
}

/// Returns the processes with their results, in the order of these: ids start over when the last was given.
fn processes(snapshot: &Snapshot) -> Vec<(OfProcess, u32)> {
    let of = |pid| OfProcess {
        phases: snapshot.counts(pid),
        stacks: snapshot.stack_counts(pid),
        functions: snapshot
            .functions
            .iter()
            .filter(|row| row.pid == pid)
            .map(|row| ((row.layer, row.phase, row.name.clone()), row.count))
            .collect(),
    };
    let mut processes: Vec<_> = snapshot.pids().into_iter().map(|pid| (of(pid), pid)).collect();
    processes.sort_unstable();
    processes
}

fn counts(snapshot: &Snapshot) -> Counts {
    let iterations = snapshot.iterations.iter().map(|row| {
        let functions = row.functions.iter().map(|row| (row.site.name.clone(), row.count));
        (row.name.clone(), row.count, row.open, functions.collect())
    });
    let accounts = snapshot.accounts.iter().map(|row| {
        let functions = row.functions.iter().map(|row| (row.site.name.clone(), row.count));
        (row.account.clone(), (row.count, functions.collect()))
    });
    let groups = snapshot.groups.iter();
    let groups = groups.map(|row| ((row.value.clone(), row.site.name.clone()), row.count));
    let odd = snapshot.odd_marks();
    Counts {
        processes: processes(snapshot).into_iter().map(|(of, _)| of).collect(),
        reports: snapshot.reports.len(),
        iterations: iterations.collect(),
        accounts: accounts.collect(),
        groups: groups.collect(),
        hand_overs: snapshot.hand_overs.map(|counts| (counts.sent, counts.received, counts.unmatched)),
        diagnostics: odd.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
    }
}

/// Records a command; returns the results of the run.
fn record<A: AsRef<OsStr>>(
    folder: &Path,
    more: &[&str],
    command: impl IntoIterator<Item = A>,
) -> Result<Snapshot> {
    let profiler = Profiler::new()?.args(["record", "-o"]).args([folder]).args(more);
    let Run { snapshot, ended } = profiler.launch(command)?;
    ended.expect_code(0)?;
    ensure!(snapshot.loss.records_dropped == 0, "nothing was to be lost: {:?}", snapshot.loss);
    Ok(snapshot)
}

/// Writes the marks of a recording under the profiler.
fn emit(folder: &Path, live: &[&str], emit: &[&str]) -> Result<Run> {
    let mut words =
        vec![binaries::profiler()?.into_os_string(), "replay".into(), "--emit".into(), folder.into()];
    words.extend(emit.iter().map(Into::into));
    let run = Profiler::new()?.args(live).launch(words)?;
    ensure!(run.ended.code() == Some(0), "{:?}", run.ended);
    ensure!(run.snapshot.loss.records_dropped == 0, "nothing was to be lost: {:?}", run.snapshot.loss);
    Ok(run)
}

/// Layers and phases that took the time that they took before, in one of several tries: whatever else runs on this machine
/// makes one late now and then, and seldom the same one.
#[derive(Default)]
struct InTime(BTreeSet<String>);

impl InTime {
    /// Adds those of one more try. Returns the first that was in time in none so far.
    fn check(&mut self, before: &Snapshot, after: &Snapshot, stretch: u64) -> Result<()> {
        let mut outcome = Ok(());
        for ((_, pid), (_, emitted)) in processes(before).into_iter().zip(processes(after)) {
            for row in before.phases.iter().filter(|row| row.pid == pid) {
                let same = |other: &&PhaseRow| {
                    other.pid == emitted && (other.layer, other.phase) == (row.layer, row.phase)
                };
                let after = after.phases.iter().find(same).context("no such phase")?;
                let expected = row.total_ns * stretch;
                let tolerance = row.count * PER_SECTION + expected / PART;
                let what = format!("{pid}: {}_{}", row.layer.code(), row.phase.code());
                println!("{what} x{}: {expected} ns, then {} ns", row.count, after.total_ns);
                if after.total_ns.abs_diff(expected) <= tolerance {
                    self.0.insert(what);
                } else if outcome.is_ok() && !self.0.contains(&what) {
                    outcome =
                        Err(anyhow!("{what}: {} ns, not {expected} ns +- {tolerance} ns", after.total_ns));
                }
            }
        }
        outcome
    }
}

fn workload() -> Result<[std::ffi::OsString; 4]> {
    Ok([binaries::workload()?.into_os_string(), "--quiet".into(), "--inferences".into(), "30".into()])
}

#[test]
fn a_network_and_its_driver_run_once_more_without_either() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let before = record(&folder.path().join("run"), &[], workload()?)?;
    let expected = counts(&before);
    ensure!(expected.processes.len() == 2 && expected.reports == 1, "{expected:?}");
    let (mut in_time, mut outcome) = (InTime::default(), Ok(()));
    for _ in 0..TRIES {
        let Run { snapshot, ended } = emit(&folder.path().join("run"), &[], &[])?;
        // Whatever the load is.
        assert_eq!(counts(&snapshot), expected);
        assert_eq!(snapshot.source.marks, MarksSeen::Uprobe);
        let sections: u64 = before.functions.iter().map(|row| row.count).sum();
        // Each section has two, and each execution is handed over to the driver by one.
        let sent = before.hand_overs.context("nothing was handed over")?.sent;
        ensure!(
            ended.stderr.contains(&format!("wrote {} marks in 2 processes", 2 * sections + sent)),
            "{}",
            ended.stderr
        );
        ensure!(ended.stderr.contains("us (median)"), "{}", ended.stderr);
        outcome = in_time.check(&before, &snapshot, 1);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

#[test]
fn half_the_speed_takes_twice_the_time_and_none_takes_none() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let before = record(&run, &[], workload()?)?;
    let expected = counts(&before);
    let (mut in_time, mut outcome) = (InTime::default(), Ok(()));
    for _ in 0..TRIES {
        let slow = emit(&run, &[], &["--speed", "0.5x"])?;
        assert_eq!(counts(&slow.snapshot), expected);
        outcome = in_time.check(&before, &slow.snapshot, 2);
        if outcome.is_ok() {
            break;
        }
    }
    outcome?;
    let Run { snapshot, ended } = emit(&run, &[], &["--speed", "max"])?;
    let of = |snapshot: &Snapshot| snapshot.phases.iter().map(|row| row.total_ns).sum::<u64>();
    ensure!(of(&snapshot) < of(&before) / 2, "{} of {} ns", of(&snapshot), of(&before));
    ensure!(!ended.stderr.contains("late by"), "{}", ended.stderr);
    let stacks =
        |counts: &Counts| -> Vec<_> { counts.processes.iter().map(|of| of.stacks.clone()).collect() };
    assert_eq!(stacks(&counts(&snapshot)), stacks(&expected));
    Ok(())
}

#[test]
fn causes_are_the_same() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let programs = ["job-queue.cc", "frames.c", "threads.cc"].map(Program::build);
    for (program, number) in programs.into_iter().zip(0..) {
        let (program, run) = (program?, folder.path().join(format!("{number}")));
        let before = counts(&record(&run, &["--by", "img"], [program.path()])?);
        assert_eq!(counts(&emit(&run, &["--by", "img"], &[])?.snapshot), before);
        match number {
            0 => ensure!(before.hand_overs == Some((25, 25, 0)) && before.accounts.len() >= 2, "{before:?}"),
            1 => ensure!(!before.iterations.is_empty(), "{before:?}"),
            _ => ensure!(before.accounts.len() >= 2, "{before:?}"),
        }
    }
    Ok(())
}

#[test]
fn ftrace_takes_the_marks_as_well() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let before = record(&run, &[], workload()?)?;
    // Other tools leave it off.
    fs::write("/sys/kernel/tracing/tracing_on", "1").context("ftrace cannot be switched on")?;
    let Run { snapshot, .. } =
        emit(&run, &["--marks", "syscall"], &["--to", "trace_marker", "--speed", "4x"])?;
    assert_eq!(snapshot.source.marks, MarksSeen::Syscall);
    assert_eq!(counts(&snapshot), counts(&before));
    Ok(())
}

#[test]
fn there_is_time_to_attach() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let before = record(&run, &[], workload()?)?;
    let mut command = Command::new(binaries::profiler()?);
    command.args(["replay", "--emit", "--speed", "4x", "--start-on", "SIGUSR1"]).arg(&run);
    let player = Child::start(&mut command)?;
    let attached = Profiler::new()?.args(["--pid", &player.pid().to_string()]).attach()?;
    player.signal(Signal::SIGUSR1)?;
    player.wait()?.expect_code(0)?;
    assert_eq!(counts(&attached.finish()?.snapshot), counts(&before));
    Ok(())
}

fn run(words: &[&OsStr]) -> Result<Ended> {
    Child::run(Command::new(binaries::profiler()?).args(words))
}

#[test]
fn only_recordings_are_written_once_more() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace.txt");
    fs::write(&trace, "nothing")?;
    let path = trace.as_os_str();
    let ended = run(&["replay".as_ref(), "--emit".as_ref(), path])?.expect_code(1)?;
    ensure!(
        ended.stderr.contains("is not a recording: it is not a folder; --emit reads folders"),
        "{}",
        ended.stderr
    );
    for wrong in
        [&["--json"][..], &["--speed", "fast"], &["--start-on", "SIGKILL"], &["--time-range", "1..2"]]
    {
        let words = ["replay", "--emit"].iter().chain(wrong).map(AsRef::as_ref);
        run(&words.chain([path]).collect::<Vec<_>>())?.expect_code(2)?;
    }
    // Without --emit the speed is that of showing a recording.
    let ended = run(&["replay".as_ref(), "--speed".as_ref(), "2x".as_ref(), path])?.expect_code(2)?;
    ensure!(ended.stderr.contains("--speed is for recordings"), "{}", ended.stderr);
    Ok(())
}

/// Without a target to trace nobody receives the marks: they are written all the same.
#[test]
fn nobody_needs_to_listen() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run");
    record(&path, &[], workload()?)?;
    let started = std::time::Instant::now();
    let ended =
        run(&["replay".as_ref(), "--emit".as_ref(), "--wait".as_ref(), "300ms".as_ref(), path.as_ref()])?;
    let ended = ended.expect_code(0)?;
    ensure!(started.elapsed() > Duration::from_millis(300), "{:?}", started.elapsed());
    ensure!(ended.stderr.contains("in 2 processes with"), "{}", ended.stderr);
    Ok(())
}
