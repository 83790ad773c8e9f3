//! All tests of the workspace.

use std::{
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
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Its target's name, and its package's folder if that has another.
    name: String,
    path: PathBuf,
    /// Folder of its package, in which it runs.
    folder: PathBuf,
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
    Some(Program { name, path, folder: folder.to_owned() })
}

/// Runs all of them to their ends, as many at once as this host can. Live tests take turns by themselves; those that compare
/// times need the CPUs for themselves, too: a program that fails beside others has to pass alone.
fn run_programs(programs: &[Program]) -> Result<()> {
    let logs = target_dir()?.join("test-logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let begin = Instant::now();
    let failed = |program: &&Program, at: &str| {
        let error = program.run(&logs).err()?;
        println!("FAILED     {}, {at}: {error:#}", program.name);
        Some(program.name.clone())
    };
    let all: Vec<&Program> = programs.iter().collect();
    let beside_others = side_by_side::jobs(&all, side_by_side::cpus(), |program| {
        failed(program, "beside others").map(|_| *program)
    });
    let again: Vec<&Program> = beside_others.into_iter().flatten().collect();
    let alone: Vec<String> = again.iter().filter_map(|program| failed(program, "alone")).collect();
    ensure!(alone.is_empty(), "tests failed in {}: {}", alone.len(), alone.join(", "));
    let took = begin.elapsed().as_secs();
    println!("passed     {} programs with tests, {} of them alone, after {took} s", all.len(), again.len());
    Ok(())
}

impl Program {
    /// Runs the tests; prints their number and duration, or all that they print if one fails.
    fn run(&self, logs: &Path) -> Result<()> {
        let log = logs.join(format!("{}.txt", self.name.replace(": ", "-")));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = file.try_clone().context("a file of messages cannot be shared")?;
        let mut test = if is_root()? {
            Command::new(&self.path)
        } else {
            let mut sudo = Command::new("sudo");
            // As root himself: the tests say who else is to have called sudo.
            sudo.args(["-E", "--", "env", "-u", "SUDO_UID", "-u", "SUDO_GID"]).arg(&self.path);
            sudo
        };
        test.env_remove("SUDO_UID")
            .env_remove("SUDO_GID")
            .current_dir(&self.folder)
            .env(REQUIRED.0, REQUIRED.1);
        let begin = Instant::now();
        let status = test.stdin(Stdio::null()).stdout(file).stderr(errors).status();
        let status = status.with_context(|| format!("{} does not start", self.path.display()))?;
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
        let found = |name: &str| {
            let name = name.to_owned();
            Some(Program { name, path: "/w/loss-1".into(), folder: "/w/tests".into() })
        };
        assert_eq!(program(&message("test", true)), found("loss"));
        assert_eq!(program(&message("bin", true)), found("tests: loss"));
        assert_eq!(program(&message("bin", false)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(program("no message"), None);
    }

    #[test]
    fn the_last_result_counts() {
        assert_eq!(passed("test result: ok. 3 passed; 0 failed\ntest result: ok. 12 passed; 1\n"), Some(12));
        assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), None);
    }
}
