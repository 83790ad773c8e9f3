//! Marks whose texts are in untouched pages: literals of forked children, files that were mapped and not read, and a
//! file system that does not answer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    bpf::Objects,
    c,
    child::Child,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
    snapshot, wait,
};
use nntrace_user::{
    live::{
        kernel::KernelOptions,
        session::{MarkSource, Session, SessionOptions},
        target::{Processes, SymbolSpec},
    },
    report::snapshot::Snapshot,
};

/// Mark function with and without the length of the text, as the programs call it: both are right.
const LAYOUTS: [&str; 2] = ["tracing_mark_write=buf", "tracing_mark_write=buf,len"];

/// Runs the program with these arguments, and the mark function of this layout.
fn run(layout: &str, words: &[&str]) -> Result<Snapshot> {
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "untouched.c")?;
    let mut command = vec![program];
    command.extend(words.iter().map(PathBuf::from));
    let Run { snapshot, ended } = Profiler::new()?.args(["--symbol", layout]).launch(&command)?;
    ended.expect_code(0)?;
    Ok(snapshot)
}

#[test]
fn literals_that_forked_children_never_read_are_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if !live::waits_for_pages()? {
        return Ok(());
    }
    for layout in LAYOUTS {
        // 2,400 marks.
        let snapshot = run(layout, &["forked", "100", "12"])?;
        assert_eq!(snapshot.odd_marks(), [].into(), "{layout}");
        let pids = snapshot.pids();
        assert_eq!(pids.len(), 100, "{layout}");
        assert!(pids.iter().all(|&pid| snapshot.count(pid, "LR_PE") == 12), "{layout}");
        assert_eq!(snapshot.overhead.marks, 2_400);
    }
    Ok(())
}

#[test]
fn texts_at_the_edges_of_pages_are_read_to_their_ends_and_not_beyond() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if !live::waits_for_pages()? {
        return Ok(());
    }
    for layout in LAYOUTS {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("texts");
        let snapshot = run(layout, &["edges", &file.display().to_string()])?;
        // One continues in a page that is missing, one begins in such a page.
        let odd = [("unreadable_mark", 2), ("empty_mark", 1)];
        assert_eq!(snapshot.odd_marks(), odd.into(), "{layout}");
        let functions: Vec<_> = snapshot.functions.iter().map(|row| (row.name.as_str(), row.count)).collect();
        assert_eq!(functions, [("edge", 3)], "{layout}");
    }
    Ok(())
}

/// Like a kernel before Linux 6.0: the programs do not wait for pages.
#[test]
fn without_programs_that_wait_the_literals_of_a_process_are_brought_in_when_it_is_adopted() -> Result<()> {
    const ROUNDS: u64 = 10;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "untouched.c")?;
    let mut child = Child::start(Command::new(program).args(["waiting", &ROUNDS.to_string()]))?;
    let mut session = Session::start(SessionOptions {
        marks: MarkSource::Functions,
        symbols: SymbolSpec::known(),
        kernel: KernelOptions { may_wait_for_pages: false, ..KernelOptions::default() },
        ..SessionOptions::default()
    })?;
    let pid = child.pid();
    wait::until("the program to run", || {
        Ok(fs::read_link(format!("/proc/{pid}/exe"))?.ends_with("untouched").then_some(()))
    })?;
    session.trace(&Processes::default().by_pid(pid)?)?;
    session.begin(None)?;
    child.send_line("go")?;
    child.wait()?.expect_code(0)?;
    session.finish()?;
    let snapshot = snapshot::of(&session.findings()?)?;
    assert_eq!(snapshot.odd_marks(), [].into());
    assert_eq!(snapshot.count(pid, "LR_PE"), ROUNDS);
    Ok(())
}

/// Starts a process whose next mark has its text in a file of a file system that does not answer; returns its process
/// id.
fn stalling(folder: &Path) -> Result<(Child, u32)> {
    let program = c::program_with(folder, "stalling.c", &["-pthread"])?;
    let mount = folder.join("mount");
    fs::create_dir(&mount)?;
    let child = Child::start(Command::new(program).arg(mount))?;
    let pid = child.lines(1)?[0].strip_prefix("ready ").context("no process")?.parse()?;
    Ok((child, pid))
}

#[test]
fn a_text_that_nobody_provides_does_not_hold_the_collector_and_who_waits_is_named() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    if !live::waits_for_pages()? || !Path::new("/dev/fuse").exists() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (mut child, pid) = stalling(folder.path())?;
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    child.send_line("mark")?;
    wait::until("the target to wait for its page", || {
        let stack = fs::read_to_string(format!("/proc/{pid}/stack"))?;
        Ok(stack.contains("copy_from_user").then_some(()))
    })?;
    let asked = Instant::now();
    profiler.signal(Signal::SIGINT)?;
    let run = profiler.finish()?;
    run.ended.expect_code(0)?;
    assert!(asked.elapsed() < Duration::from_secs(20), "it took {:?}", asked.elapsed());
    assert_eq!(run.snapshot.counts(pid), [("LR_PE".to_owned(), 1)].into(), "what came before is counted");
    let named = format!("of process {pid} waits for the memory page");
    assert!(run.snapshot.notes.iter().any(|note| note.contains(&named)), "{:?}", run.snapshot.notes);
    assert!(!held.still_there()?.is_empty(), "its probe cannot be gone while it is in it");

    // Once answered, the process continues, and the kernel releases everything.
    child.send_line("answer")?;
    assert_eq!(child.lines(2)?[1], "marked");
    wait::until("everything to go", || Ok(held.still_there()?.is_empty().then_some(())))
}

#[test]
fn a_text_that_comes_late_is_counted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    if !live::waits_for_pages()? || !Path::new("/dev/fuse").exists() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (mut child, pid) = stalling(folder.path())?;
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    child.send_line("mark")?;
    wait::until("the target to wait for its page", || {
        let stack = fs::read_to_string(format!("/proc/{pid}/stack"))?;
        Ok(stack.contains("copy_from_user").then_some(()))
    })?;
    child.send_line("answer")?;
    assert_eq!(child.lines(2)?[1], "marked");
    profiler.signal(Signal::SIGINT)?;
    let run = profiler.finish()?;
    run.ended.expect_code(0)?;
    assert_eq!(run.snapshot.counts(pid), [("LR_PE".to_owned(), 2)].into());
    assert_eq!(run.snapshot.odd_marks(), [].into());
    let names: Vec<&str> = run.snapshot.functions.iter().map(|row| row.name.as_str()).collect();
    assert!(names.contains(&"stalled") && names.contains(&"good"), "{names:?}");
    Ok(())
}
