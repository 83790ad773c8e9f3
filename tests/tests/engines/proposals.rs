//! Proposed maps of a library that no map is for: they name its run and its operators, and show them.

use std::{fs, process::Command};

use anyhow::{Result, ensure};
use nntrace_tests::{
    binaries,
    child::Child,
    hooked::Hooked,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};

/// Rounds of the program.
const ROUNDS: u64 = 40;

/// Lines of a map that are used, those of an entry together.
fn entries(map: &str) -> Vec<String> {
    let used = map.split("[[engine.probe]]").skip(1);
    let lines = |entry: &str| {
        let lines: Vec<&str> = entry.lines().take_while(|line| !line.starts_with('#')).collect();
        lines.join(" ").trim().to_owned()
    };
    // An entry in a comment has its mark before it.
    used.zip(map.split("[[engine.probe]]"))
        .filter(|(_, before)| !before.ends_with('#'))
        .map(|(entry, _)| lines(entry))
        .collect()
}

#[test]
fn a_command_shows_which_functions_are_runs_and_operators() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let library = engine.at("libengine.so");
    let words = engine.words("linked", "counts", ROUNDS);
    let mut command = Command::new(binaries::profiler()?);
    let proposed = Child::run(command.args(["engines", "--propose"]).arg(&library).arg("--").args(&words))?;
    let proposed = proposed.expect_code(0)?;
    let map = proposed.text();
    let expected = [
        "at = { export = \"hooked_run\" } mark = \"LR_PE\"",
        "at = { rtti = \"hooked::Operator\", slot = 2 } mark = \"LC_PE\" level = \"op\"",
    ];
    assert_eq!(entries(&map), expected, "{map}");
    // What the command prints is not part of the map.
    ensure!(map.starts_with("# Map for libengine.so") && !proposed.stderr.is_empty(), "{map}");
    let file = engine.at("proposed.toml");
    fs::write(&file, &map)?;
    let profiler = Profiler::new()?.args(["--engine-level", "op", "--map"]).args([&file]);
    let Run { snapshot, ended } = profiler.launch(&words)?;
    ended.expect_code(0)?;
    let [pid] = snapshot.pids()[..] else { anyhow::bail!("{:?}", snapshot.notes) };
    assert_eq!((snapshot.count(pid, "LR_PE"), snapshot.count(pid, "LC_PE")), (ROUNDS, 3 * ROUNDS), "{map}");
    Ok(())
}

#[test]
fn without_a_command_the_file_alone_is_judged() -> Result<()> {
    let engine = Hooked::build()?;
    let mut command = Command::new(binaries::profiler()?);
    let proposed = Child::run(command.args(["engines", "--propose"]).arg(engine.at("libengine.so")))?;
    let map = proposed.expect_code(0)?.text();
    let [run, operator] = &entries(&map)[..] else { anyhow::bail!("{map}") };
    assert_eq!(run, "at = { export = \"hooked_run\" } mark = \"LR_PE\"", "{map}");
    assert!(operator.contains("hooked::Operator"), "{map}");
    Ok(())
}

#[test]
fn a_command_that_uses_another_library_is_named_as_the_reason() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let mut command = Command::new(binaries::profiler()?);
    command.args(["engines", "--propose"]).arg(engine.at("libengine.so")).args(["--", "true"]);
    let ended = Child::run(&mut command)?;
    ensure!(ended.code() == Some(1) && ended.stdout.is_empty(), "{}", ended.text());
    ensure!(ended.stderr.contains("the command called no candidate"), "{}", ended.stderr);
    Ok(())
}

#[test]
fn what_cannot_be_proposed_is_said() -> Result<()> {
    for (words, status, said) in [
        (&["engines", "--propose"][..], 2, "name one library"),
        (&["engines", "--propose", "/etc/passwd"], 1, "ELF"),
        (&["engines", "--propose", "/no/such/file"], 1, "cannot open /no/such/file"),
        (&["engines", "/bin/true", "--", "true"], 2, "--propose"),
    ] {
        let ended = Child::run(Command::new(binaries::profiler()?).args(words))?;
        ensure!(ended.status.code() == Some(status), "{words:?}: {} {}", ended.status, ended.stderr);
        ensure!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        ensure!(ended.stdout.is_empty(), "{words:?}: no half of a map");
    }
    Ok(())
}
