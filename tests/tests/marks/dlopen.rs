//! Libraries that are loaded at run time, and programs that see other files and numbers than we do.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    c,
    child::Child,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
    wait,
};
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

/// Checks the marks of `marked.c` for this number of rounds, including its constructor.
fn expect_all(snapshot: &Snapshot, pid: u32, rounds: u64) {
    let counts = [("LR_PE", rounds), ("LR_PI", 1)].map(|(tag, count)| (tag.to_owned(), count));
    assert_eq!(snapshot.counts(pid), counts.into(), "{:?}", snapshot.notes);
    assert_eq!(snapshot.odd_marks(), [].into());
    assert_eq!(missing(snapshot), None);
}

/// Returns the note about marks that may be missing.
fn missing(snapshot: &Snapshot) -> Option<&String> {
    snapshot.notes.iter().find(|note| note.contains("may be missing"))
}

/// Builds the program, and the library that it loads, in a folder.
fn build() -> Result<(TempDir, String, String)> {
    let folder = tempfile::tempdir()?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is no text");
    let program = text(&c::program(folder.path(), "opener.c")?)?;
    let library = text(&c::library(folder.path(), "marked.c")?)?;
    Ok((folder, program, library))
}

/// Launches a command that ends up as `opener`; returns the snapshot and the process id that `opener` printed.
fn launch(words: &[&str]) -> Result<(Snapshot, u32)> {
    let Run { snapshot, ended } = Profiler::new()?.launch(words)?;
    let text = ended.expect_code(0)?.text();
    let pid = text.lines().find_map(|line| line.strip_prefix("pid ")?.parse().ok());
    Ok((snapshot, pid.with_context(|| format!("no number in {text}"))?))
}

#[test]
fn a_launched_program_is_held_until_what_it_loads_is_probed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    for _ in 0..5 {
        let (snapshot, pid) = launch(&[&program, &library, "3"])?;
        expect_all(&snapshot, pid, 3);
    }
    Ok(())
}

#[test]
fn a_program_that_is_executed_in_its_place_is_held_too() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    let script = format!("exec {program} {library} 4");
    let (snapshot, pid) = launch(&["/bin/sh", "-c", &script])?;
    expect_all(&snapshot, pid, 4);
    Ok(())
}

#[test]
fn of_a_program_that_runs_on_it_is_told_what_may_be_missing() -> Result<()> {
    const ROUNDS: u64 = 1_000;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    let mut command = Command::new(&program);
    command.args([&library, &ROUNDS.to_string(), "wait"]);
    let mut child = Child::start(&mut command)?;
    child.lines(1)?;
    let pid = child.pid();
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    child.send_line("load it")?;
    child.lines(2)?;
    // It is not visible from outside when the probe is in place; the note bounds it, and this is far beyond.
    std::thread::sleep(std::time::Duration::from_secs(5));
    child.send_line("go on")?;
    child.wait()?.expect_code(0)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    let note = missing(&snapshot).with_context(|| format!("no note: {:?}", snapshot.notes))?;
    assert!(note.contains("libmarked.so"), "{note}");
    let us: u64 = note.split(' ').find_map(|word| word.parse().ok()).context("no number")?;
    assert!((1..5_000_000).contains(&us), "{note}");
    let counted = snapshot.count(pid, "LR_PE");
    assert!((ROUNDS..=2 * ROUNDS).contains(&counted), "{counted}: the second half is exact");
    // The update interval was an hour: the loader's notification came first.
    Ok(())
}

#[test]
fn a_loader_whose_function_has_another_name_is_found_by_what_it_tells_debuggers() -> Result<()> {
    const NAME: &[u8] = b"_dl_debug_state";
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (folder, _, library) = build()?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let is_loader = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("ld-"));
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let mut bytes = std::fs::read(paths.find(is_loader).context("this test has no loader")?)?;
    let at = bytes.windows(NAME.len()).position(|window| window == NAME).context("its name is not there")?;
    bytes[at] = b'X';
    let loader = folder.path().join("loader.so");
    std::fs::write(&loader, bytes)?;
    std::fs::set_permissions(&loader, Permissions::from_mode(0o755))?;
    let flag = format!("-Wl,--dynamic-linker={}", loader.display());
    let program = c::program_with(folder.path(), "opener.c", &[&flag])?;
    let (snapshot, pid) = launch(&[program.to_str().context("the path is no text")?, &library, "3"])?;
    expect_all(&snapshot, pid, 3);
    assert!(!snapshot.notes.iter().any(|note| note.contains("loaded later")), "{:?}", snapshot.notes);
    Ok(())
}

/// Returns the state of a process in /proc: `R`, `S`, `T` (stopped).
fn state(pid: &str) -> Result<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').next());
    state.map(str::to_owned).with_context(|| format!("no state in {stat}"))
}

#[test]
fn a_program_that_loads_all_the_time_ends_when_it_is_asked_to() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    let run = Profiler::new()?.args(["--duration", "1s"]).launch([&program, &library, "0", "for-ever"])?;
    let ended = run.ended.expect_code(0)?;
    assert!(!ended.stderr.contains("ignores SIGTERM"), "{}", ended.stderr);
    let counted = run.snapshot.phases.iter().map(|row| row.count).sum::<u64>();
    assert!(counted > 10, "its constructor ran {counted} times");
    Ok(())
}

#[test]
fn a_held_program_goes_on_when_we_are_killed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    for _ in 0..5 {
        let words = ["--json-lines", "--interval", "1h", "--", &program, &library, "0", "for-ever"];
        let mut profiler = Profiler::new()?.args(words);
        let profiler = Child::start(profiler.command())?;
        // Its number, and our snapshot.
        let lines = profiler.lines(2)?;
        let pid = lines.iter().find_map(|line| line.strip_prefix("pid ")).context("no number")?;
        profiler.signal(Signal::SIGKILL)?;
        wait::until("it to go on", || {
            // For several looks: it must not be stopped again.
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                if state(pid)? == "T" {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })?;
    }
    Ok(())
}

#[test]
fn a_library_in_another_mount_namespace_is_found() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (folder, program, library) = build()?;
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside)?;
    let (from, to) = (folder.path().display(), inside.display());
    // Outside of its mount namespace nothing is at that path.
    let script = format!("mount --bind {from} {to} && exec {program} {to}/libmarked.so 5");
    let (snapshot, pid) = launch(&["unshare", "--mount", "/bin/sh", "-c", &script])?;
    assert!(!inside.join("libmarked.so").exists() && Path::new(&library).exists());
    expect_all(&snapshot, pid, 5);
    Ok(())
}

#[test]
fn processes_in_another_pid_namespace_have_the_numbers_that_we_see() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (_folder, program, library) = build()?;
    // Probed beforehand: we cannot hold a child of the command.
    let Run { snapshot, ended } = Profiler::new()?
        .args(["--lib", &library])
        .launch(["unshare", "--pid", "--fork", &program, &library, "6"])?;
    let text = ended.expect_code(0)?.text();
    let pid: u32 = text.trim().trim_start_matches("pid ").parse().with_context(|| text.clone())?;
    assert_ne!(pid, 1, "as /proc out here has it");
    expect_all(&snapshot, pid, 6);
    Ok(())
}
