//! Targets that cannot be traced, or not be requested: a clear message and the right exit code, never a hang.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::Command,
};

use anyhow::{Result, ensure};
use nntrace_tests::{binaries, child::Child, live, profiler::Profiler, results::Results as _, snapshot};

/// Number without a process.
const NO_PID: &str = "4194304";

/// Runs the profiler, which must fail.
fn refused(args: &[&str], code: i32) -> Result<String> {
    let mut profiler = Profiler::new()?;
    let ended = Child::run(profiler.command().args(args))?.expect_code(code)?;
    assert_eq!(ended.text(), "", "a failure prints nothing to stdout");
    Ok(ended.stderr)
}

#[test]
fn a_process_that_is_not_there_is_told() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let text = refused(&["--json", "--pid", NO_PID], 1)?;
    assert!(text.contains(&format!("no process {NO_PID}")), "{text}");
    let text = refused(&["--json", "--comm", "nntrace-no-such-name"], 1)?;
    assert!(text.contains("no process is named \"nntrace-no-such-name\""), "{text}");
    Ok(())
}

#[test]
fn a_thread_is_told_with_its_process() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut command = Command::new(env!("CARGO_BIN_EXE_mark-flood"));
    command.args(["--threads", "1", "--pause-us", "1000", "--until-stdin"]);
    let flood = Child::start(&mut command)?;
    flood.lines(1)?;
    let tid = nntrace_tests::wait::until("a second thread", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", flood.pid()))?;
        let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
        Ok(tids.into_iter().find(|&tid| tid != flood.pid()))
    })?;
    let text = refused(&["--json", "--pid", &tid.to_string()], 1)?;
    let expected = format!("{tid} is a thread of process {}", flood.pid());
    assert!(text.contains(&expected) && text.contains(&format!("--pid {}", flood.pid())), "{text}");
    Ok(())
}

#[test]
fn a_process_that_ends_while_it_is_attached_to_is_no_disaster() -> Result<()> {
    const ROUNDS: u32 = 25;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut codes = [0, 0];
    for round in 0..ROUNDS {
        // From before the profiler looks for it until after it has attached.
        let seconds = format!("0.{:03}", round * 30);
        let target = Child::start(Command::new("sleep").arg(seconds))?;
        let mut profiler = Profiler::new()?;
        let pid = target.pid().to_string();
        let profiler = Child::start(profiler.command().args(["--json", "--pid", &pid]))?;
        // Reaped at its end, so that it is gone and not only ended.
        target.wait()?;
        let ended = profiler.wait()?;
        match ended.code() {
            Some(0) => ensure!(!ended.stdout.is_empty(), "no snapshot: {}", ended.stderr),
            Some(1) => ensure!(
                ended.stderr.contains(&format!("process {pid}")) && ended.stdout.is_empty(),
                "not told: {}",
                ended.stderr
            ),
            _ => ensure!(false, "{ended:?}"),
        }
        ensure!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        codes[ended.code().unwrap_or(0).unsigned_abs() as usize] += 1;
    }
    println!("attached {} times, too late {} times", codes[0], codes[1]);
    Ok(())
}

#[test]
fn without_a_mark_function_it_says_where_it_looked_and_measures_the_cpus() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = Profiler::new()?.launch(["sleep", "0.2"])?;
    let text = &run.ended.stderr;
    assert!(
        text.contains("neither a known engine nor a function named tracing_mark_write in sleep\n"),
        "{text}"
    );
    assert!(text.contains("`nntrace-bpf engines FILE`"), "{text}");
    assert!(
        text.contains("looked into ") && text.contains("/sleep: stripped") && text.contains("libc.so"),
        "{text}"
    );
    assert!(text.contains("--symbol"), "it says what to do: {text}");
    assert!(
        run.snapshot.notes.iter().any(|note| note.contains("power states only")),
        "{:?}",
        run.snapshot.notes
    );
    assert!(run.snapshot.phases.is_empty() && run.snapshot.window.length_ns() >= 200_000_000);
    run.ended.expect_code(0)?;
    Ok(())
}

#[test]
fn without_privileges_it_names_what_is_missing_and_the_command_that_mends_it() -> Result<()> {
    const NOBODY: u32 = 65_534;
    let Some(_live) = live::enter()? else { return Ok(()) };
    // In a place where any user can execute it.
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let program = folder.path().join("nntrace-bpf");
    fs::copy(binaries::profiler()?, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new(&program);
    command.args(["--json", "--duration", "100ms"]).current_dir("/").uid(NOBODY).gid(NOBODY);
    let ended = Child::run(&mut command)?.expect_code(1)?;
    let setcap = format!("+ep {}", program.display());
    for expected in ["CAP_BPF", "CAP_PERFMON", "sudo setcap", &setcap] {
        assert!(ended.stderr.contains(expected), "{expected:?} is not in: {}", ended.stderr);
    }
    Ok(())
}

#[test]
fn too_few_descriptors_are_no_fault_of_the_kernel() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for limit in [20, 60, 100] {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nofile={limit}:{limit}"))
            .arg(binaries::profiler()?)
            .args(["--duration", "100ms"]);
        let refused = Child::run(&mut command)?.expect_code(1)?.stderr;
        let expected = format!("this process may have {limit} files open, which are too few");
        assert!(refused.contains(&expected) && refused.contains("ulimit -n 1024"), "{refused}");
        assert!(!refused.contains("CONFIG_BPF"), "{refused}");
    }
    Ok(())
}

#[test]
fn what_is_not_understood_is_a_usage_error() -> Result<()> {
    for args in [
        &["--no-such-option"][..],
        &["--duration", "soon"],
        &["--duration", "0"],
        &["--pid", "x"],
        &["--ring-size", "1"],
        &["--json", "--json-lines"],
        &["--symbol", "f=what"],
        &["stray"],
    ] {
        let text = refused(args, 2)?;
        assert!(text.starts_with("error: "), "{args:?}: {text}");
    }
    Ok(())
}

#[test]
fn a_file_that_exists_is_replaced_by_force_only() -> Result<()> {
    const BEFORE: &str = "something else";
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("results.json");
    fs::write(&file, BEFORE)?;
    let json = format!("--json={}", file.display());
    let text = refused(&[&json, "--duration", "100ms"], 1)?;
    assert!(text.contains("exists already") && text.contains("--force"), "{text}");
    assert_eq!(fs::read_to_string(&file)?, BEFORE);
    let mut profiler = Profiler::new()?;
    Child::run(profiler.command().args([&json, "--force", "--duration", "100ms"]))?.expect_code(0)?;
    snapshot::read(&fs::read(&file)?)?.check()
}

#[test]
fn a_cluster_of_cpus_that_are_not_there_is_told() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let text = refused(&["--json", "--cluster", "big=4000", "--duration", "100ms"], 1)?;
    assert!(text.contains("CPU 4000"), "{text}");
    Ok(())
}
