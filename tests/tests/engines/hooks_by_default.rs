//! Commands are hooked without an option, if they bear it; what hooks do not reach is said, and no process is held up for long.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    child::Child,
    hooked::{Hooked, operators},
    live, native,
    profiler::{Profiler, Run},
};
use nntrace_user::report::snapshot::Snapshot;

const ROUNDS: u64 = 50;

/// The notes on operators that are not recorded.
fn unrecorded(snapshot: &Snapshot) -> Vec<&String> {
    snapshot.notes.iter().filter(|note| note.starts_with("operators of ")).collect()
}

#[test]
fn operators_of_a_command_are_hooked_and_those_of_other_processes_are_not_recorded() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let snapshot = engine.profile(&[], "loads", "counts", ROUNDS)?;
    ensure!(operators(&snapshot) == 3 * ROUNDS && unrecorded(&snapshot).is_empty(), "{:?}", snapshot.notes);
    for (options, reason) in [
        (&["--no-hooks"][..], Some("these options allow no hooks")),
        (&["--marks", "uprobe"], Some("these options allow no hooks")),
        (&["--engine-level", "run"], None),
    ] {
        let snapshot = engine.profile(options, "loads", "counts", ROUNDS)?;
        let notes = unrecorded(&snapshot);
        let is_said = match reason {
            Some(reason) => {
                notes.len() == 1 && notes[0].contains(reason) && notes[0].contains("--engine-level op")
            }
            None => notes.is_empty(),
        };
        ensure!(operators(&snapshot) == 0 && is_said, "{options:?}: {:?}", snapshot.notes);
        ensure!(snapshot.functions.iter().any(|row| row.name == "run" && row.count == ROUNDS), "{options:?}");
    }
    Ok(())
}

#[test]
fn a_program_that_bears_no_library_is_started_without_one() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("prints.c");
    fs::write(
        &source,
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\") ? \"preloaded\" : \"plain\"); }\n",
    )?;
    let build = |name: &str, flags: &[&str]| -> Result<PathBuf> {
        let program = folder.path().join(name);
        native::compile(&[&["cc"], flags].concat(), &[&source], &program)?;
        Ok(program)
    };
    for (name, flags, expected) in [
        ("shared", &[][..], "preloaded"),
        ("static", &["-static"], "plain"),
        ("checked", &["-fsanitize=address"], "plain"),
    ] {
        let program = build(name, flags)?;
        let Run { ended, .. } = Profiler::new()?.launch([&program])?;
        ensure!(ended.expect_code(0)?.text().trim() == expected, "{name}");
        let refused = Child::run(Profiler::new()?.args(["--hooks", "--"]).args([&program]).command())?;
        ensure!((refused.code() == Some(0)) == (expected == "preloaded"), "{name}: {}", refused.stderr);
    }
    Ok(())
}

/// Folders of hooks that are there now, but were not before.
fn new_folders(before: &[PathBuf]) -> Result<Vec<PathBuf>> {
    Ok(folders()?.into_iter().filter(|path| !before.contains(path)).collect())
}

/// Folders of hooks that runs have left.
fn folders() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir("/var/lib")?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(entries.filter(|path| path.display().to_string().contains("nntrace-hooks-")).collect())
}

#[test]
fn a_process_that_outlives_the_run_executes_programs_as_before() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    // It waits until the run is over; then it executes a program, whose loader looks for the library.
    let script = "while ! test -e $0; do sleep 0.05; done; LC_ALL=C ls / > $1 2> $2; echo done >> $1";
    let leave = "setsid sh -c \"$@\" >/dev/null 2>&1 & sleep 0.3";
    let words = ["sh", "-c", leave, "sh", script, &at("over"), &at("out"), &at("errors")];
    let before = folders()?;
    let Run { snapshot, ended } = Profiler::new()?.launch(words)?;
    ended.expect_code(0)?;
    ensure!(snapshot.notes.iter().any(|note| note.contains("that it started live")), "{:?}", snapshot.notes);
    let kept = new_folders(&before)?;
    ensure!(kept.len() == 1 && !kept[0].join("plans").exists(), "{kept:?}");
    fs::write(at("over"), "")?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fs::read_to_string(at("out")).unwrap_or_default().ends_with("done\n") {
        ensure!(Instant::now() < deadline, "the program does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    ensure!(fs::read_to_string(at("errors"))?.is_empty(), "{}", fs::read_to_string(at("errors"))?);
    // As a later run would once it is old.
    fs::remove_dir_all(&kept[0]).context("the folder cannot be removed")
}

#[test]
fn a_profiler_that_is_killed_holds_nobody_up() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let before = folders()?;
    let profiler = Profiler::new()?.args(["--json", "--", "sh", "-c"]);
    // Programs that nobody has examined: each is a new file.
    let script = "echo ready; read line; for at in 1 2 3 4 5 6 7 8 9 10; do cp /bin/true $0/$at; $0/$at; done; echo done";
    let folder = tempfile::tempdir()?;
    let mut profiler = Child::start(profiler.args([Path::new(script), folder.path()]).command())?;
    profiler.lines(1)?;
    profiler.signal(Signal::SIGKILL)?;
    let begin = Instant::now();
    profiler.send_line("go on")?;
    profiler.lines(2)?;
    let took = begin.elapsed();
    // Each would wait half a second for a profiler that is there.
    ensure!(took < Duration::from_secs(3), "ten programs took {took:?}");
    new_folders(&before)?.iter().try_for_each(|left| Ok(fs::remove_dir_all(left)?))
}

#[test]
fn a_program_that_waits_for_nothing_is_not_slowed_down() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    // After the first of each, all that the programs map is known.
    let words = ["sh", "-c", "for at in $(seq 300); do /bin/true; done"];
    let mut times = [Duration::ZERO; 2];
    for (time, options) in times.iter_mut().zip([&["--no-hooks"][..], &[]]) {
        let begin = Instant::now();
        Profiler::new()?.args(options).launch(words)?.ended.expect_code(0)?;
        *time = begin.elapsed();
    }
    println!("{times:?}");
    ensure!(times[1] < times[0] * 2 + Duration::from_secs(1), "without hooks and with: {times:?}");
    Ok(())
}

#[test]
fn a_process_that_already_runs_gets_a_note_on_probes() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let mut target = Child::start(Command::new(engine.at("linked")).args(["waits", "10"]))?;
    target.lines(1)?;
    let pid = target.pid().to_string();
    let map = engine.at("engine.toml");
    let profiler =
        Profiler::new()?.args([Path::new("--pid"), Path::new(&pid), Path::new("--map"), &map]).attach()?;
    target.send_line("")?;
    target.wait()?.expect_code(0)?;
    let Run { snapshot, .. } = profiler.finish()?;
    let notes = unrecorded(&snapshot);
    ensure!(notes.len() == 1 && notes[0].contains("already runs"), "{:?}", snapshot.notes);
    Ok(())
}

#[test]
fn a_program_under_a_filter_makes_no_system_call_that_is_not_its_own() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("confined");
    native::compile(&["cc"], &[&native::source("confined.c")], &program)?;
    let words = [&program, Path::new("/bin/echo"), Path::new("unharmed")];
    let plain = Child::run(Command::new(words[0]).args(&words[1..]))?.expect_code(0)?.text();
    let Run { ended, .. } = Profiler::new()?.launch(words)?;
    ensure!(ended.expect_code(0)?.text() == plain);
    Ok(())
}

#[test]
fn children_that_are_forked_while_a_library_is_loaded_find_functions() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("forks");
    native::compile(
        &["cc", "-D_GNU_SOURCE", "-pthread"],
        &[&native::source("forks_while_loading.c")],
        &program,
    )?;
    let library = engine.at("libengine.so");
    let Run { ended, .. } = Profiler::new()?.launch([&program, &library, Path::new("300")])?;
    ensure!(ended.expect_code(0)?.text().trim() == "failed: 0");
    Ok(())
}

#[test]
fn a_profiler_that_is_stopped_holds_nobody_up() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let script =
        "echo ready; read line; for at in 1 2 3 4 5 6 7 8; do cp /bin/true $0/$at; $0/$at; done; echo done";
    let folder = tempfile::tempdir()?;
    let file = format!("--json={}", folder.path().join("result.json").display());
    let mut profiler = Profiler::new()?.args([&file, "--", "sh", "-c", script]).args([folder.path()]);
    let mut profiler = Child::start(profiler.command())?;
    profiler.lines(1)?;
    profiler.signal(Signal::SIGSTOP)?;
    let begin = Instant::now();
    profiler.send_line("go on")?;
    let went_on = profiler.lines(2);
    let took = begin.elapsed();
    profiler.signal(Signal::SIGCONT)?;
    went_on?;
    profiler.wait()?.expect_code(0)?;
    ensure!(took < Duration::from_secs(2), "eight programs took {took:?}");
    Ok(())
}
