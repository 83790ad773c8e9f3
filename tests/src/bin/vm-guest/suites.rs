//! Runs the live tests unchanged.

use std::{fmt::Write as _, fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::child::Child;

use crate::{Outcome, host, run};

/// Program with the tests.
const TESTS: &str = "/nntrace/deps/tests";
/// File with the names of its modules that are to run, one in each line.
const MODULES: &str = "/nntrace/modules";
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

/// Returns the modules with tests, in the order in which they run; none where there are no tests.
pub fn names() -> Vec<String> {
    let names = fs::read_to_string(MODULES).unwrap_or_default();
    names.lines().map(str::to_owned).collect()
}

/// Returns the tests of a module, as the program lists them.
fn of_module(program: &str, module: &str) -> Result<Vec<String>> {
    let listed = Child::start(Command::new(program).arg("--list"))?
        .wait_for(Duration::from_mins(1))?
        .expect_code(0)?
        .text();
    let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_in_module = |test: &&str| test.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"));
    let tests: Vec<String> = tests.filter(is_in_module).map(str::to_owned).collect();
    ensure!(!tests.is_empty(), "{program} has no tests in a module {module}");
    Ok(tests)
}

fn suite(name: &str, log: &mut String) -> Result<Outcome> {
    let tests = of_module(TESTS, name)?;
    let mut command = Command::new(TESTS);
    command.args(["--test-threads=1", "--show-output", "--exact"]).args(tests);
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
