//! `-- COMMAND`: the command behaves as if it ran alone, and none of its marks is missed.

use std::{collections::BTreeSet, ffi::OsString, fs, process::Command};

use anyhow::Result;
use nntrace_tests::{binaries, child::Child, live, marks::around, profiler::Profiler, results::Results as _};

#[test]
fn its_exit_status_is_passed_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for code in [0, 1, 7, 255] {
        let run = Profiler::new()?.launch(["sh", "-c", &format!("exit {code}")])?;
        run.ended.expect_code(code)?;
    }
    Ok(())
}

#[test]
fn killed_by_a_signal_it_ends_as_a_shell_says() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for (signal, code) in [("TERM", 128 + 15), ("KILL", 128 + 9), ("INT", 128 + 2)] {
        // When the tests run in the background of a script, SIGINT is ignored, and a shell cannot undo that.
        let script = format!("kill -s {signal} $$");
        let run = Profiler::new()?.launch(["env", "--default-signal", "sh", "-c", &script])?;
        run.ended.expect_code(code)?;
    }
    Ok(())
}

#[test]
fn what_it_prints_and_reads_is_untouched() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let script = "seq 1 200000; echo to stderr >&2";
    let alone = Child::run(Command::new("sh").args(["-c", script]))?;
    let run = Profiler::new()?.launch(["sh", "-c", script])?;
    let ended = run.ended.expect_code(0)?;
    assert!(ended.stdout == alone.stdout, "{} bytes, not {}", ended.stdout.len(), alone.stdout.len());
    assert!(ended.stderr.lines().any(|line| line == "to stderr"), "{}", ended.stderr);
    Ok(())
}

#[test]
fn a_command_that_cannot_be_started_is_told_in_words() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let plain = folder.path().join("plain");
    fs::write(&plain, "no program")?;
    let plain = plain.to_string_lossy().into_owned();
    for (command, expected) in [
        ("nntrace-no-such-command", "command \"nntrace-no-such-command\" not found in PATH="),
        ("/nonexistent/command", "no file /nonexistent/command"),
        ("/", "/ cannot be executed: it is a directory"),
        (&*plain, "cannot be executed: its mode has no x"),
    ] {
        let mut profiler = Profiler::new()?;
        let ended = Child::run(profiler.command().args(["--json", "--", command]))?.expect_code(1)?;
        assert!(ended.stderr.contains(expected), "{expected:?} is not in: {}", ended.stderr);
        assert_eq!(ended.stdout, b"", "there is no snapshot");
    }
    Ok(())
}

#[test]
fn it_is_held_until_its_first_mark_is_seen() -> Result<()> {
    const RUNS: usize = 20;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut pids = BTreeSet::new();
    for _ in 0..RUNS {
        let command = [OsString::from(env!("CARGO_BIN_EXE_mark-raw"))].into_iter().chain(around("LR_PE", []));
        let run = Profiler::new()?.launch(command)?;
        run.ended.expect_code(0)?;
        let [pid] = run.snapshot.pids()[..] else { panic!("one process: {:?}", run.snapshot.phases) };
        assert_eq!(run.snapshot.count(pid, "LR_PE"), 1);
        pids.insert(pid);
    }
    assert_eq!(pids.len(), RUNS);
    Ok(())
}

#[test]
fn under_sudo_it_runs_as_the_caller() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let profiler = Profiler::new()?.called_by(65_534, 65_533)?;
    let run = profiler.launch(["sh", "-c", "id -u; id -g; echo ${SUDO_UID-none}"])?;
    assert_eq!(run.ended.expect_code(0)?.text(), "65534\n65533\nnone\n");
    let run = Profiler::new()?.launch(["id", "-u"])?;
    assert_eq!(run.ended.expect_code(0)?.text(), "0\n");
    Ok(())
}

#[test]
fn it_ends_when_the_time_is_over() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--duration", "300ms"]).launch(["sleep", "1000"])?;
    let length = run.snapshot.window.length_ns();
    run.ended.expect_code(0)?;
    assert!(length >= 300_000_000, "{length} ns");
    Ok(())
}

#[test]
fn text_is_one_table_at_the_end_unless_updates_are_asked_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for (options, updates) in [(&[][..], false), (&["--interval", "200ms"], true)] {
        let mut profiler = Profiler::new()?.args(["--marks", "none", "--duration", "1500ms"]).args(options);
        let text = Child::run(profiler.command())?.expect_code(0)?.text();
        let tables = text.matches("CPUs, in percent of").count();
        assert!(if updates { tables > 3 } else { tables == 1 }, "{options:?}: {text}");
        assert_eq!(text.contains("--- "), updates, "{text}");
    }
    Ok(())
}

#[test]
fn it_treats_signals_as_the_profiler_was_started_to() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let started = ["--ignore-signal=PIPE", "--block-signal=USR1"];
    let shown = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let alone = Child::run(Command::new("env").args(started).args(shown))?.expect_code(0)?;
    let mut profiler = Command::new("env");
    profiler
        .args(started)
        .arg(binaries::profiler()?)
        .args(["--json", "-o"])
        .arg(folder.path().join("run.json"))
        .arg("--")
        .args(shown);
    let traced = Child::run(&mut profiler)?.expect_code(0)?;
    let signals: Vec<String> =
        traced.text().lines().filter(|line| line.starts_with("Sig")).map(str::to_owned).collect();
    assert_eq!(signals, alone.text().lines().collect::<Vec<_>>());
    assert!(alone.text().contains("1000\nSigCgt"), "{}", alone.text());
    Ok(())
}
