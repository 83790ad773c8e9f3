//! The process that examines files for the profiler: it has no rights, and its end is not that of the run.

use std::{collections::BTreeMap, fs, path::Path, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_tests::{
    c,
    child::Child,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
    wait,
};

/// Returns the fields of `/proc/PID/status` of the process that examines files for a profiler; `None` if there is none.
fn examiner(profiler: u32) -> Option<(i32, BTreeMap<String, String>)> {
    let children = fs::read_to_string(format!("/proc/{profiler}/task/{profiler}/children")).ok()?;
    children.split_whitespace().find_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let fields = status.lines().filter_map(|line| line.split_once(":\t"));
        let fields: BTreeMap<String, String> =
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let is_it = fields["Name"] == "nntrace-examine" && !fields["State"].starts_with('Z');
        is_it.then(|| Some((pid.parse().ok()?, fields)))?
    })
}

#[test]
fn it_has_no_rights_and_another_one_takes_its_place() -> Result<()> {
    const ROUNDS: u64 = 1_000;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is not UTF-8");
    let program = text(&c::program(folder.path(), "opener.c")?)?;
    let library = text(&c::library(folder.path(), "marked.c")?)?;
    let mut child = Child::start(Command::new(&program).args([&library, &ROUNDS.to_string(), "wait"]))?;
    child.lines(1)?;
    let pid = child.pid();
    let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
    let (first, fields) = examiner(profiler.pid()).context("files are not examined by another process")?;
    for (name, expected) in [
        ("Uid", "65534\t65534\t65534\t65534"),
        ("Gid", "65534\t65534\t65534\t65534"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("NoNewPrivs", "1"),
        // Only calls that a filter allows.
        ("Seccomp", "2"),
    ] {
        assert_eq!(fields[name], expected, "{name}");
    }
    kill(Pid::from_raw(first), Signal::SIGKILL)?;
    child.send_line("load it")?;
    child.lines(2)?;
    wait::until("another process to examine the library", || {
        Ok(examiner(profiler.pid()).filter(|(pid, _)| *pid != first))
    })?;
    // It is not visible from outside when the probe is in place; the note bounds it, and this is far beyond.
    thread::sleep(Duration::from_secs(2));
    child.send_line("go on")?;
    child.wait()?.expect_code(0)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    let counted = snapshot.count(pid, "LR_PE");
    assert!((ROUNDS..=2 * ROUNDS).contains(&counted), "{counted}: {:?}", snapshot.notes);
    assert!(!snapshot.notes.iter().any(|note| note.contains("not examined")), "{:?}", snapshot.notes);
    Ok(())
}
