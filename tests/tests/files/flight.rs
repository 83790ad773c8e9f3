//! Bounded recordings: the last seconds of a run, written when there is a cause, and recordings of a largest size.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    child::{Child, Ended},
    live,
    native::Program,
    profiler::Profiler,
    recording, wait,
};
use nntrace_user::{
    record::{self, ReplayOptions},
    report::snapshot::Snapshot,
};

const FLOOD: &str = env!("CARGO_BIN_EXE_mark-flood");

/// Length of the long section of `slow-once`, ns.
const LONG: u64 = 120_000_000;

/// Starts a recording of a command.
fn start(folder: &Path, options: &[&str], command: &[&str]) -> Result<Child> {
    let mut profiler = Profiler::new()?.args(["record", "-o"]).args([folder]).args(options);
    profiler.command().arg("--").args(command);
    Child::start(profiler.command())
}

/// Records `slow-once` with these options, for a time and with a long section at another, ms.
fn slow_once(folder: &Path, options: &[&str], time: &str, at: &str) -> Result<Child> {
    let program = Program::build("slow-once.c")?;
    let path = program.path().to_str().context("UTF-8")?;
    let child = start(folder, options, &[path, time, at, "120"])?;
    child.lines(1)?;
    Ok(child)
}

fn replay(folder: &Path) -> Result<Snapshot> {
    Ok(Snapshot::of(&record::replay(folder, &ReplayOptions::default())?.findings()))
}

/// Returns the folder of the second recording.
fn second(folder: &Path) -> PathBuf {
    folder.with_file_name("run-2")
}

fn expect_note(snapshot: &Snapshot, text: &str) -> Result<()> {
    ensure!(snapshot.notes.iter().any(|note| note.contains(text)), "no note {text:?}: {:?}", snapshot.notes);
    Ok(())
}

/// Checks that a recording has the last two seconds of `slow-once`, and nothing is missing in them.
fn check_two_seconds(folder: &Path) -> Result<Snapshot> {
    let snapshot = replay(folder)?;
    let length = snapshot.window.length_ns();
    ensure!((1_500_000_000..=2_000_000_000).contains(&length), "{length} ns");
    ensure!(snapshot.loss.records_unreadable == 0, "{:?}", snapshot.notes);
    let (mut listed, begin) = (0, snapshot.window.begin_ns);
    record::sections(folder, |section| listed += u64::from(section.end_ns > begin))?;
    let counted: u64 = snapshot.functions.iter().map(|row| row.count).sum();
    ensure!(counted == listed && counted > 300, "{counted} sections counted, {listed} listed");
    let total: u64 = snapshot.stacks.iter().map(|row| row.count).sum();
    ensure!(total == counted, "{total} in the totals, {counted} counted");
    for cpu in &snapshot.cpus {
        let idle: u64 = cpu.idle.iter().map(|row| row.ns).sum();
        ensure!(idle <= length, "CPU {} was idle for {idle} of {length} ns", cpu.cpu);
    }
    Ok(snapshot)
}

#[test]
fn a_long_section_has_one_recording_of_the_last_seconds() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("run");
    let options = ["--flight", "2s", "--trigger", "st?p > 100ms", "--level", "sched"];
    let ended = slow_once(&folder, &options, "4500", "3000")?.wait()?.expect_code(7)?;
    assert!(ended.stderr.contains("1 recording was written"), "{}", ended.stderr);
    let snapshot = check_two_seconds(&folder)?;
    expect_note(&snapshot, "which --trigger 'st?p > 100ms' waits for")?;
    expect_note(&snapshot, "of a run that had lasted")?;
    assert!(!snapshot.threads.is_empty());
    let mut long = 0;
    record::sections(&folder, |section| long += u32::from(section.end_ns - section.begin_ns >= LONG))?;
    assert_eq!(long, 1);
    assert!(!second(&folder).exists());
    Ok(())
}

#[test]
fn the_signal_writes_a_recording_each_time() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("run");
    let child = slow_once(&folder, &["--flight", "2s"], "6000", "0")?;
    thread::sleep(Duration::from_secs(3));
    for (signalled, path) in [folder.clone(), second(&folder)].iter().enumerate() {
        assert!(!path.exists(), "after {signalled} signals");
        child.signal(Signal::SIGUSR2)?;
        wait::until("the recording", || Ok(replay(path).ok()))?;
        let snapshot = check_two_seconds(path)?;
        expect_note(&snapshot, "SIGUSR2 came")?;
    }
    child.wait()?.expect_code(7)?;
    Ok(())
}

#[test]
fn nothing_is_written_without_a_cause() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("run");
    let options = ["--flight", "2s", "--trigger", "step > 10s"];
    let ended = slow_once(&folder, &options, "1000", "500")?.wait()?.expect_code(7)?;
    assert!(ended.stderr.contains("no recording was written"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(parent.path())?.count(), 0);
    Ok(())
}

#[test]
fn what_is_no_trigger_is_refused_with_the_place() -> Result<()> {
    let mut profiler =
        Profiler::new()?.args(["record", "-o", "x", "--flight", "1s", "--trigger", "step > fast"]);
    let ended = Child::run(profiler.command())?.expect_code(2)?;
    assert!(ended.stderr.contains("at character 8: expected a duration"), "{}", ended.stderr);
    Ok(())
}

/// Records sections with names of their own, this many microseconds apart.
fn flood(folder: &Path, options: &[&str], seconds: &str, apart: &str) -> Result<Ended> {
    let command = [FLOOD, "--what", "names", "--seconds", seconds, "--threads", "2", "--pause-us", apart];
    let options = [options, &["--ring-size", "16384"]].concat();
    start(folder, &options, &command)?.wait()
}

fn size(folder: &Path) -> Result<u64> {
    let names = recording::files(folder)?;
    names.iter().map(|name| Ok(fs::metadata(folder.join(name))?.len())).sum()
}

#[test]
fn a_recording_ends_at_its_size_and_the_target_does_not() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("run");
    let ended = flood(&folder, &["--max-size", "96K"], "3", "150")?.expect_code(0)?;
    assert!(ended.text().contains("done "), "the target did not run to its end: {}", ended.text());
    assert_eq!(ended.stderr.matches("that --max-size allows").count(), 2, "{}", ended.stderr);
    let snapshot = replay(&folder)?;
    expect_note(&snapshot, "it has ended, and the run went on")?;
    assert_eq!(snapshot.loss.records_unreadable, 0, "{:?}", snapshot.notes);
    let (length, size) = (snapshot.window.length_ns(), size(&folder)?);
    assert!(length < 2_500_000_000 && size >= 96 << 10, "{length} ns, {size} bytes");
    Ok(())
}

#[test]
fn a_recording_that_rotates_has_the_newest_events() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("run");
    let options = ["--max-size", "64K", "--rotate", "--interval", "500ms"];
    let ended = flood(&folder, &options, "6", "1000")?.expect_code(0)?;
    let size = size(&folder)?;
    assert!((24 << 10..=(64 + 64) << 10).contains(&size), "{size} bytes");
    let snapshot = replay(&folder)?;
    expect_note(&snapshot, "what came before was not kept")?;
    assert_eq!(snapshot.loss.records_unreadable, 0, "{:?}", snapshot.notes);
    assert_eq!(snapshot.loss.records_dropped, 0, "a ring was too small");

    // Fewer names than fill the kernel's table. Those of a thread's sections have numbers, without a gap up to its last one.
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    record::sections(&folder, |section| {
        if let Some((thread, number)) = section.name.rsplit_once('_') {
            numbers.entry(thread.to_owned()).or_default().extend(number.parse::<u64>());
        }
    })?;
    assert_eq!(numbers.len(), 2);
    let mut rounds = 0;
    for (thread, mut numbers) in numbers {
        numbers.sort_unstable();
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        ensure!(first > 0, "{thread}: nothing was given up");
        ensure!(last - first + 1 == numbers.len() as u64, "{thread}: {first} to {last}, {}", numbers.len());
        rounds += last + 1;
    }
    assert!(ended.text().contains(&format!("done {rounds}")), "{rounds} rounds, and not {}", ended.text());
    let counted: u64 = snapshot.stacks.iter().map(|row| row.count).sum();
    let (mut listed, begin) = (0, snapshot.window.begin_ns);
    record::sections(&folder, |section| listed += u64::from(section.end_ns > begin))?;
    assert_eq!(counted, listed);
    Ok(())
}
