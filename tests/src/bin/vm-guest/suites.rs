//! Runs the live tests unchanged.

use std::{fmt::Write as _, fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::child::Child;

use crate::{Outcome, host, run};

/// Folder of the test programs, each named like its source, and of this program.
const SUITES: &str = "/nntrace/deps";
/// Number of marks of a flood: each takes a tenth of a millisecond here.
const FLOOD: &str = "40000";
/// File with their output for the host.
const LOG: &str = "tests.log";

/// Runs the wanted tests; returns the number of failed ones.
pub fn run_all(is_wanted: impl Fn(&str) -> bool) -> usize {
    let mut log = String::new();
    let names = names();
    let wanted = names.iter().filter(|name| is_wanted(name));
    let failed = wanted.map(|name| run(name, || suite(name, &mut log))).sum();
    if !log.is_empty()
        && let Err(error) = host::send(LOG, log.as_bytes())
    {
        println!("what the tests printed is lost: {error:#}");
    }
    failed
}

/// Returns the test programs that are here, in the order in which they run.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(SUITES).into_iter().flatten().flatten();
    let own = std::env::current_exe().ok();
    let is_own = |name: &str| own.as_deref().and_then(Path::file_name).is_some_and(|own| own == name);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !is_own(name)).collect();
    names.sort();
    names
}

fn suite(name: &str, log: &mut String) -> Result<Outcome> {
    let mut command = Command::new(Path::new(SUITES).join(name));
    command.args(["--test-threads=1", "--show-output"]);
    command.envs([("PATH", "/bin"), ("NNTRACE_LIVE", "required"), ("NNTRACE_FLOOD_MARKS", FLOOD)]);
    let ended = Child::start(&mut command)?.wait_for(Duration::from_mins(10))?;
    let text = ended.text();
    writeln!(log, "=== {name}\n{text}{}", ended.stderr)?;
    let results: Vec<&str> = text.lines().filter(|line| line.starts_with("test ")).collect();
    for line in &results {
        println!("{name}: {line}");
    }
    let code = ended.code().context("a signal ended it")?;
    ensure!(code == 0, "exit code {code}; {LOG} has what it printed");
    ensure!(!results.is_empty(), "it ran no test");
    Ok(Outcome::Passed)
}
