//! The terminal interface in a real terminal, which is given back as it was.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_tests::{
    binaries, live,
    tmux::{PROMPT, Tmux},
    wait,
};

/// A terminal, unless there is no tmux and none is required.
fn terminal() -> Result<Option<Tmux>> {
    if Tmux::is_installed() {
        return Tmux::start(80, 24).map(Some);
    }
    if live::is_required() {
        bail!("tmux is not installed");
    }
    eprintln!("skipped: tmux is not installed");
    Ok(None)
}

/// Starts the profiler on the workload in the terminal.
fn start(terminal: &Tmux) -> Result<()> {
    let (profiler, workload) = (binaries::profiler()?, binaries::workload()?);
    settings(terminal, "before")?;
    terminal.line(&format!(
        "{} --interval 300ms -- {} --seconds 60 --quiet",
        profiler.display(),
        workload.display()
    ))
}

/// The terminal's settings, as `stty` tells them to a file.
fn settings(terminal: &Tmux, name: &str) -> Result<String> {
    let file = terminal.folder().join(name);
    terminal.line(&format!("stty -a > {0}.part; mv {0}.part {0}", file.display()))?;
    wait::until("stty", || match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text?)),
    })
}

/// The shell is back on the ordinary screen, and the terminal as it was.
fn check_given_back(terminal: &Tmux) -> Result<()> {
    terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with(PROMPT.trim_end()))?;
    for (name, expected) in [("alternate_on", "0"), ("cursor_flag", "1"), ("mouse_any_flag", "0")] {
        assert_eq!(terminal.value(name)?, expected, "{name}");
    }
    let before = fs::read_to_string(terminal.folder().join("before")).context("no settings from before")?;
    assert_eq!(settings(terminal, "after")?, before);
    // What was found stays on the ordinary screen.
    terminal.line("clear; echo status=$?")?;
    terminal.wait_for("an answer of the shell", |screen| screen.contains("status=0")).map(drop)
}

/// The profiler that runs in the terminal: a child of its shell.
fn profiler_in(terminal: &Tmux) -> Result<Pid> {
    let shell = terminal.value("pane_pid")?;
    let output = Command::new("ps").args(["-o", "pid=,comm=", "--ppid", &shell]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.contains("nntrace-bpf")).context("no profiler runs")?;
    let pid = line.split_whitespace().next().context("no number")?;
    Ok(Pid::from_raw(pid.parse()?))
}

#[test]
fn views_keys_and_sizes() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    start(&terminal)?;
    terminal.wait_for("the phases", |screen| screen.contains("[1 Phases") && screen.contains("Execution"))?;
    assert_eq!(terminal.value("alternate_on")?, "1");

    terminal.key("Tab")?;
    terminal.wait_for("the CPUs", |screen| screen.contains("[2 CPUs") && screen.contains("cpu0"))?;
    terminal.key("Tab")?;
    terminal.wait_for("the stacks", |screen| screen.contains("[3 Stacks") && screen.contains("Execution"))?;
    terminal.key("Tab")?;
    terminal.wait_for("the phases again", |screen| screen.contains("[1 Phases"))?;

    terminal.key("?")?;
    terminal
        .wait_for("the help", |screen| screen.contains("this help") && screen.contains("previous view"))?;
    terminal.key("Escape")?;
    terminal.wait_for("no help", |screen| !screen.contains("previous view"))?;

    terminal.resize(200, 50)?;
    let wide = |screen: &str| screen.lines().any(|line| line.trim_end().chars().count() > 100);
    terminal.wait_for("a wide screen", |screen| screen.contains("Execution") && wide(screen))?;
    terminal.resize(80, 24)?;
    terminal.wait_for("the old size", |screen| screen.contains("Execution") && !wide(screen))?;
    terminal.resize(40, 10)?;
    terminal.wait_for("the word on the size", |screen| screen.contains("need 60x15, have 40x10"))?;
    terminal.resize(80, 24)?;
    terminal.wait_for("the old size again", |screen| screen.contains("Execution"))?;

    terminal.key("q")?;
    check_given_back(&terminal)
}

#[test]
fn terminated_it_gives_the_terminal_back() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    start(&terminal)?;
    terminal.wait_for("the phases", |screen| screen.contains("Execution"))?;
    kill(profiler_in(&terminal)?, Signal::SIGTERM)?;
    check_given_back(&terminal)
}

#[test]
fn what_the_command_prints_comes_when_the_screen_is_given_back() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    settings(&terminal, "before")?;
    let profiler = binaries::profiler()?;
    terminal.line(&format!("{} -- sh -c 'echo printed-by; exit 3'; echo code=$?", path(&profiler)))?;
    // It stays, so that people can look, until they leave.
    let screen = terminal.wait_for("the end", |screen| screen.contains("exited with status 3"))?;
    assert!(!screen.contains("printed-by"), "{screen}");
    terminal.key("q")?;
    terminal.wait_for("what was kept, and the status", |screen| {
        screen.lines().any(|line| line == "printed-by") && screen.contains("code=3")
    })?;
    check_given_back(&terminal)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
