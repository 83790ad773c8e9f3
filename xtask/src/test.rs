//! All tests of the workspace.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    engines,
    run::{as_root, cargo, command, is_root, run, target_dir},
    setup,
    side_by_side::{self, Part},
    target_libraries,
};

/// Packages with tests.
const PACKAGES: [&str; 3] = ["--workspace", "--exclude", "nntrace-ebpf"];

/// Compiles as the user and runs the tests, which load kernel programs, as root: all of them, or as `cargo test` does with
/// these arguments.
pub fn run_all(args: &[String]) -> Result<()> {
    setup::all()?;
    let mut programs = Vec::new();
    side_by_side::all(vec![
        Part::new("what tests use", || {
            setup::tests()?;
            engines::for_tests();
            Ok(())
        }),
        Part::new("tests and programs", || {
            programs = build()?;
            target_libraries::beside("debug")
        }),
    ])?;
    if args.is_empty() {
        run_programs(&programs)?;
        run(live()?.args(PACKAGES).args(["--doc", "--quiet"]))
    } else {
        run(live()?.args(PACKAGES).args(args))
    }
}

/// Returns a `cargo test` command whose tests run as root. A live test that cannot run is a failed test.
pub fn live() -> Result<Command> {
    let mut test = cargo("test");
    test.env(REQUIRED.0, REQUIRED.1);
    if !is_root()? {
        as_root(command("true"))?;
        test.args(["--config", r#"target."cfg(all())".runner = ["sudo", "-E", "--"]"#]);
    }
    Ok(test)
}

/// Variable that makes a live test fail where it cannot run.
const REQUIRED: (&str, &str) = ("NNTRACE_LIVE", "required");

/// Program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its target's name, and its package's folder if that has another.
    name: String,
    path: PathBuf,
    /// Folder of its package, in which it runs.
    folder: PathBuf,
    /// Whether each of its modules runs in a process of its own.
    has_modules: bool,
}

/// Tests that run in one process.
#[derive(Debug)]
struct Job {
    /// Name for people: that of the program, with the module.
    name: String,
    program: Program,
    /// Tests of the module; empty for all of the program.
    tests: Vec<String>,
}

/// Builds everything, as live tests call the binaries, too; returns the programs with tests. All at once: binaries built by
/// themselves have other features of what they depend on, so that our own library would be compiled twice.
pub fn build() -> Result<Vec<Program>> {
    let mut build = cargo("build");
    build.args(PACKAGES).args(["--all-targets", "--quiet", "--message-format=json-render-diagnostics"]);
    let messages = build.stderr(Stdio::inherit()).output().context("cargo build does not start")?;
    ensure!(messages.status.success(), "the tests cannot be built: {}", messages.status);
    let messages = String::from_utf8(messages.stdout).context("cargo's messages are no text")?;
    let programs: Vec<Program> = messages.lines().filter_map(program).collect();
    ensure!(!programs.is_empty(), "cargo has built no tests");
    Ok(programs)
}

/// Returns the program with tests that a message of cargo is about.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let path = message["executable"].as_str()?.into();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    let package = folder.file_name()?.to_str()?;
    let is_of_tests = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = if is_of_tests { target.to_owned() } else { format!("{package}: {target}") };
    Some(Program { name, path, folder: folder.to_owned(), has_modules: is_of_tests })
}

/// Runs all tests to their ends, some more at once than there are CPUs. Live tests wait for one another where they have to
/// (`live::enter`); those that compare times need the CPUs for themselves, too: what fails beside others has to pass alone.
fn run_programs(programs: &[Program]) -> Result<()> {
    let logs = target_dir()?.join("test-logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let begin = Instant::now();
    let failed = |job: &Job, at: &str| {
        let error = job.run(&logs).err()?;
        println!("FAILED     {}, {at}: {error:#}", job.name);
        Some(job.name.clone())
    };
    let jobs: Vec<Vec<Job>> = programs.iter().map(Program::jobs).collect::<Result<_>>()?;
    let mut all: Vec<&Job> = jobs.iter().flatten().collect();
    // By name, which puts `engines`, the longest, first, so that it overlaps with others.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    // Live tests mostly wait: for a program, for an interval, for their turn.
    let at_once = side_by_side::cpus() + 1;
    let beside_others = side_by_side::jobs(&all, at_once, |job| failed(job, "beside others").map(|_| *job));
    let again: Vec<&Job> = beside_others.into_iter().flatten().collect();
    let alone: Vec<String> = again.iter().filter_map(|job| failed(job, "alone")).collect();
    ensure!(alone.is_empty(), "tests failed in {}: {}", alone.len(), alone.join(", "));
    let took = begin.elapsed().as_secs();
    println!("passed     {} jobs, {} of them alone, after {took} s", all.len(), again.len());
    Ok(())
}

impl Program {
    /// Returns its tests by the process in which they run.
    fn jobs(&self) -> Result<Vec<Job>> {
        let job = |name, tests| Job { name, program: self.clone(), tests };
        if !self.has_modules {
            return Ok(vec![job(self.name.clone(), Vec::new())]);
        }
        let list = Command::new(&self.path).arg("--list").output();
        let list = list.with_context(|| format!("{} does not start", self.path.display()))?;
        ensure!(list.status.success(), "{} cannot list its tests: {}", self.path.display(), list.status);
        let modules = by_module(&String::from_utf8_lossy(&list.stdout));
        let named = |(module, tests): (String, Vec<String>)| {
            let name = if module.is_empty() { self.name.clone() } else { format!("{}::{module}", self.name) };
            job(name, tests)
        };
        Ok(modules.into_iter().map(named).collect())
    }
}

/// Returns the tests of a list as libtest prints it, by the module of the program in which they are.
fn by_module(list: &str) -> BTreeMap<String, Vec<String>> {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split_once("::").map_or("", |(module, _)| module);
        modules.entry(module.to_owned()).or_default().push(test.to_owned());
    }
    modules
}

impl Job {
    /// Runs the tests; prints their number and duration, or all that they print if one fails.
    fn run(&self, logs: &Path) -> Result<()> {
        let log = logs.join(format!("{}.txt", self.name.replace([':', ' '], "-")));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = file.try_clone().context("a file of messages cannot be shared")?;
        let mut test = if is_root()? {
            Command::new(&self.program.path)
        } else {
            let mut sudo = Command::new("sudo");
            // As root himself: the tests say who else is to have called sudo.
            sudo.args(["-E", "--", "env", "-u", "SUDO_UID", "-u", "SUDO_GID"]).arg(&self.program.path);
            sudo
        };
        if !self.tests.is_empty() {
            // One at a time: more jobs than there are CPUs run already.
            test.args(["--test-threads=1", "--exact"]).args(&self.tests);
        }
        test.env_remove("SUDO_UID")
            .env_remove("SUDO_GID")
            .current_dir(&self.program.folder)
            .env(REQUIRED.0, REQUIRED.1);
        let begin = Instant::now();
        let status = test.stdin(Stdio::null()).stdout(file).stderr(errors).status();
        let status = status.with_context(|| format!("{} does not start", self.program.path.display()))?;
        let messages = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let messages = String::from_utf8_lossy(&messages);
        ensure!(status.success(), "{status}\n{messages}");
        let took = begin.elapsed().as_secs();
        println!("passed     {}: {} tests, {took} s", self.name, passed(&messages).unwrap_or_default());
        Ok(())
    }
}

/// Parses the number of tests that have passed.
fn passed(messages: &str) -> Option<u64> {
    let result = messages.lines().rev().find_map(|line| line.strip_prefix("test result: ok. "))?;
    result.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_tests_are_found_in_messages() {
        let message = |kind: &str, is_test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{{"kind":["{kind}"],"name":"loss"}},"profile":{{"test":{is_test}}},"executable":"/w/loss-1"}}"#
            )
        };
        let found = |name: &str, has_modules| {
            let name = name.to_owned();
            Some(Program { name, path: "/w/loss-1".into(), folder: "/w/tests".into(), has_modules })
        };
        assert_eq!(program(&message("test", true)), found("loss", true));
        assert_eq!(program(&message("bin", true)), found("tests: loss", false));
        assert_eq!(program(&message("bin", false)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(program("no message"), None);
    }

    #[test]
    fn tests_are_grouped_by_module() {
        let list =
            "loss::a: test\nalone: test\nloss::deep::b: test\nloss::c: benchmark\n\n4 tests, 0 benchmarks\n";
        let of = |tests: &[&str]| tests.iter().map(|&test| test.to_owned()).collect::<Vec<_>>();
        let expected =
            [(String::new(), of(&["alone"])), ("loss".to_owned(), of(&["loss::a", "loss::deep::b"]))];
        assert_eq!(by_module(list), BTreeMap::from(expected));
    }

    #[test]
    fn the_last_result_counts() {
        assert_eq!(passed("test result: ok. 3 passed; 0 failed\ntest result: ok. 12 passed; 1\n"), Some(12));
        assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), None);
    }
}
