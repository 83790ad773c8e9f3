//! Surroundings of tests: what they start behaves alike under `nohup`, in a job of CI, and in anybody's shell.

use std::process::Command;

use anyhow::Result;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nntrace_tests::child::{Child, signal_of};

#[test]
fn programs_start_with_default_signals() -> Result<()> {
    // As under `nohup`, and as in a thread of a program that waits for signals.
    // SAFETY: an ignored signal runs no code.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }?;
    SigSet::from(Signal::SIGTERM).thread_block()?;
    for number in [Signal::SIGHUP, Signal::SIGTERM] {
        let script = format!("kill -{} $$; echo alive", number as i32);
        let ended = Child::run(Command::new("sh").args(["-c", &script]))?;
        assert_eq!(signal_of(ended.status), Some(number as i32), "{number}: {}", ended.text());
    }
    Ok(())
}

#[test]
fn programs_see_no_settings_but_those_of_their_test() -> Result<()> {
    // Another process, whose variables are its own, runs the test below.
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--ignored", "--exact", "surroundings::inner"]);
    command.envs([
        ("NO_COLOR", "1"),
        ("COLUMNS", "7"),
        ("LC_ALL", "de_DE"),
        ("SUDO_UID", "1"),
        ("RUST_LOG", "x"),
    ]);
    let output = command.output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
#[ignore = "it is the inner part of another test"]
fn inner() -> Result<()> {
    let printed = Child::run(Command::new("env").env("NNTRACE_LOG", "debug"))?.text();
    let is_setting = |line: &&str| {
        ["NO_COLOR", "COLUMNS", "LC_", "SUDO_", "RUST_LOG"].iter().any(|start| line.starts_with(start))
    };
    assert_eq!(printed.lines().find(is_setting), None, "{printed}");
    assert!(printed.contains("NNTRACE_LOG=debug\n"), "{printed}");
    Ok(())
}
