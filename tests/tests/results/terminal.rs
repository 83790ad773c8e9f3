//! The terminal interface in a real terminal, which is restored afterwards.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_tests::{
    binaries, live, native, picture,
    tmux::{PROMPT, Tmux},
    wait,
};

/// Starts a terminal, unless there is no tmux and none is required.
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

/// Returns the terminal's settings, from the output of `stty` in a file.
fn settings(terminal: &Tmux, name: &str) -> Result<String> {
    let file = terminal.folder().join(name);
    terminal.line(&format!("stty -a > {0}.part; mv {0}.part {0}", file.display()))?;
    wait::until("stty", || match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text?)),
    })
}

/// Checks that the shell is back on the ordinary screen, and the terminal as before; the profiler has succeeded.
fn check_given_back(terminal: &Tmux) -> Result<()> {
    // The profiler's own status, before any other command runs.
    terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with(PROMPT.trim_end()))?;
    terminal.line("echo status=$?")?;
    terminal.wait_for("its status", |screen| screen.lines().any(|line| line == "status=0"))?;
    check_as_before(terminal)
}

/// Checks that the shell is on the ordinary screen, and the terminal as before.
fn check_as_before(terminal: &Tmux) -> Result<()> {
    terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with(PROMPT.trim_end()))?;
    for (name, expected) in [("alternate_on", "0"), ("cursor_flag", "1"), ("mouse_any_flag", "0")] {
        assert_eq!(terminal.value(name)?, expected, "{name}");
    }
    let before = fs::read_to_string(terminal.folder().join("before")).context("no settings from before")?;
    let after = terminal.folder().join("after");
    if after.exists() {
        fs::remove_file(&after)?;
    }
    assert_eq!(settings(terminal, "after")?, before);
    terminal.line("clear; echo it ans''wers")?;
    terminal.wait_for("an answer of the shell", |screen| screen.contains("it answers")).map(drop)
}

/// Returns the profiler that runs in the terminal: a child of its shell.
fn profiler_in(terminal: &Tmux) -> Result<Pid> {
    let shell = terminal.value("pane_pid")?;
    let output = Command::new("ps").args(["-o", "pid=,comm=", "--ppid", &shell]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.contains("nntrace-bpf")).context("no profiler runs")?;
    let pid = line.split_whitespace().next().context("no number")?;
    Ok(Pid::from_raw(pid.parse()?))
}

/// The words of a picture's lines, from the left.
fn lines_of(svg: &str) -> Result<Vec<String>> {
    let document = roxmltree::Document::parse(svg)?;
    let mut lines: BTreeMap<u32, Vec<(u32, &str)>> = BTreeMap::new();
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        let place = |name| text.attribute(name).context("a text without a place")?.parse().context("a place");
        lines.entry(place("y")?).or_default().push((place("x")?, text.text().unwrap_or_default()));
    }
    let words = |mut texts: Vec<(u32, &str)>| {
        texts.sort_unstable();
        let words = texts.iter().flat_map(|(_, text)| text.split_whitespace());
        words.collect::<Vec<_>>().join(" ")
    };
    Ok(lines.into_values().map(words).collect())
}

/// The words of a picture that are the interface's own: those of the line under the tabs, and the keys. Names, figures and their units
/// differ from run to run.
fn own_words(svg: &str, view: picture::View) -> Result<[Vec<String>; 2]> {
    let lines = lines_of(svg)?;
    let words = |mark: &str| -> Vec<String> {
        let line = lines.iter().find(|line| line.contains(mark)).cloned().unwrap_or_default();
        let words = line.split(' ').filter(|word| word.starts_with(char::is_alphabetic) && word.len() > 2);
        words.map(str::to_owned).collect()
    };
    // The line above a function in full has the names of the run.
    let head =
        if view.head == "Esc: back to the list" { vec![view.head.to_owned()] } else { words(view.head) };
    Ok([head, words("q quit")])
}

/// Tabs, heads of tables and keys are the interface's own: where they changed, `cargo xtask picture` was forgotten.
#[test]
fn the_pictures_in_the_documentation_are_of_this_interface() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if terminal()?.is_none() {
        return Ok(());
    }
    let terminal = Tmux::start(picture::COLUMNS, picture::ROWS)?;
    let (profiler, workload) = (binaries::profiler()?, binaries::workload()?);
    let [options, of_workload] = picture::ARGUMENTS;
    terminal.line(&format!("{} {options} -- {} {of_workload} 60", path(&profiler), path(&workload)))?;
    terminal.wait_for("the phases", |screen| screen.contains("[1 Phases") && screen.contains("Execution"))?;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nntrace-user/docs");
    for view in picture::VIEWS {
        let committed = docs.join(view.file);
        let committed = own_words(&fs::read_to_string(&committed).context(view.file)?, view)?;
        assert!(committed.iter().all(|words| !words.is_empty()), "{}: {committed:?}", view.file);
        let mut now = own_words(&picture::svg(&view.show(&terminal)?, "now"), view)?;
        // On a loaded machine a screen may be half drawn for long.
        let same = wait::until("the words of the picture", || {
            if now != committed {
                now = own_words(&picture::svg(&picture::current(&terminal)?, "now"), view)?;
            }
            Ok((now == committed).then_some(()))
        });
        let file = view.file;
        same.with_context(|| {
            format!("{file} has {committed:?}, the interface {now:?}: run `cargo xtask picture`")
        })?;
    }
    terminal.key("q")
}

#[test]
fn views_keys_and_sizes() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    start(&terminal)?;
    terminal.wait_for("the phases", |screen| screen.contains("[1 Phases") && screen.contains("Execution"))?;
    assert_eq!(terminal.value("alternate_on")?, "1");

    terminal.key("Tab")?;
    terminal.wait_for("the CPUs", |screen| screen.contains("[2 CPUs") && screen.contains("cpu0"))?;
    terminal.key("Tab")?;
    // Which of them was first, and stays selected, depends on the host.
    terminal.wait_for("the stacks", |screen| screen.contains("[3 Stacks") && screen.contains("LR_PE"))?;
    terminal.key("Tab")?;
    terminal
        .wait_for("the functions", |screen| screen.contains("[4 Functions") && screen.contains("LR_PE "))?;
    terminal.key("/")?;
    terminal.key("x")?;
    terminal.wait_for("the filter", |screen| screen.contains("/x_"))?;
    terminal.key("Enter")?;
    terminal
        .wait_for("what it leaves", |screen| screen.contains("/x  ") && screen.contains("Esc shows all"))?;
    terminal.key("F5")?;
    terminal.wait_for("the word on the key", |screen| screen.contains("F5 does nothing here"))?;
    // Not by Escape: a key directly after it would be one with Alt.
    terminal.key("/")?;
    terminal.key("BSpace")?;
    terminal.key("Enter")?;
    terminal
        .wait_for("all functions", |screen| screen.contains("LR_PE ") && screen.contains("Enter: details"))?;
    terminal.key("Enter")?;
    terminal.wait_for("a function", |screen| {
        screen.contains("slowest calls") && screen.contains("thread") && screen.contains(" at ")
    })?;
    terminal.key("Tab")?;
    terminal.wait_for("the threads", |screen| {
        screen.contains("[5 Threads") && screen.contains("start with --level sched")
    })?;
    terminal.key("Tab")?;
    terminal
        .wait_for("the energy", |screen| screen.contains("[6 Energy") && screen.contains("--energy-model"))?;
    terminal.key("Tab")?;
    terminal.wait_for("the timeline", |screen| {
        screen.contains("[7 Timeline") && screen.contains(" per column") && screen.contains("no cursor")
    })?;
    terminal.key("[")?;
    terminal.wait_for("a section", |screen| screen.contains("began at ") && !screen.contains("no cursor"))?;
    terminal.key("Tab")?;
    terminal.wait_for("the hand-overs", |screen| {
        screen.contains("[8 Hand-overs") && screen.contains("start with --handoff")
    })?;
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
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    start(&terminal)?;
    terminal.wait_for("the phases", |screen| screen.contains("Execution"))?;
    kill(profiler_in(&terminal)?, Signal::SIGTERM)?;
    check_given_back(&terminal)
}

#[test]
fn what_the_command_prints_comes_when_the_screen_is_given_back() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    settings(&terminal, "before")?;
    let profiler = binaries::profiler()?;
    terminal.line(&format!("{} -- sh -c 'echo printed-by; exit 3'; echo code=$?", path(&profiler)))?;
    // It stays, so that the user can look, until it is quit.
    let screen = terminal.wait_for("the end", |screen| screen.contains("exited with status 3"))?;
    assert!(!screen.contains("printed-by"), "{screen}");
    terminal.key("q")?;
    terminal.wait_for("what was kept, and the status", |screen| {
        screen.lines().any(|line| line == "printed-by") && screen.contains("code=3")
    })?;
    check_given_back(&terminal)
}

/// Returns the state of a process, as in `ps`: `T` when it is stopped.
fn state(pid: Pid) -> Result<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).context("no state")
}

/// Returns the command that the profiler has launched.
fn command_of(profiler: Pid) -> Result<Pid> {
    let children = fs::read_to_string(format!("/proc/{profiler}/task/{profiler}/children"))?;
    Ok(Pid::from_raw(children.split_whitespace().next().context("no command runs")?.parse()?))
}

fn wait_stopped(pid: Pid, stopped: bool) -> Result<()> {
    wait::until("a change of state", || Ok(((state(pid)? == 'T') == stopped).then_some(())))
}

#[test]
fn suspended_it_leaves_the_terminal_to_the_shell() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    start(&terminal)?;
    terminal.wait_for("the phases", |screen| screen.contains("Execution"))?;
    let profiler = profiler_in(&terminal)?;
    let command = command_of(profiler)?;
    // Repeated: the restored settings must be the original ones, not ours.
    for _ in 0..2 {
        // The key stops the whole job, like any other program.
        terminal.key("C-z")?;
        wait_stopped(profiler, true)?;
        wait_stopped(command, true)?;
        check_as_before(&terminal)?;
        terminal.line("fg")?;
        terminal.wait_for("the phases again", |screen| screen.contains("[1 Phases"))?;
        assert_eq!(terminal.value("alternate_on")?, "1");
        wait_stopped(command, false)?;
        // The terminal belongs to the profiler again, including keys.
        terminal.key("2")?;
        terminal.wait_for("the CPUs", |screen| screen.contains("[2 CPUs") && screen.contains("cpu0"))?;
        terminal.key("1")?;
        terminal.wait_for("the phases", |screen| screen.contains("[1 Phases"))?;
    }
    // The signal is for one process.
    kill(profiler, Signal::SIGTSTP)?;
    wait_stopped(profiler, true)?;
    assert_ne!(state(command)?, 'T');
    check_as_before(&terminal)?;
    terminal.line("fg")?;
    terminal.wait_for("the phases again", |screen| screen.contains("[1 Phases"))?;
    terminal.key("q")?;
    check_given_back(&terminal)
}

#[test]
fn in_the_background_it_waits_for_the_terminal() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    settings(&terminal, "before")?;
    terminal.line(&format!("{} --marks none --interval 300ms &", path(&binaries::profiler()?)))?;
    let profiler = wait::until("the profiler", || Ok(profiler_in(&terminal).ok()))?;
    wait_stopped(profiler, true)?;
    terminal.line("clear")?;
    check_as_before(&terminal)?;
    terminal.line("fg")?;
    terminal.wait_for("the CPUs", |screen| screen.contains("[1 Phases"))?;
    terminal.key("C-z")?;
    wait_stopped(profiler, true)?;
    // In the background it has no terminal to draw on.
    terminal.line("bg")?;
    terminal.line("clear")?;
    wait_stopped(profiler, true)?;
    check_as_before(&terminal)?;
    terminal.line("fg")?;
    terminal.wait_for("the phases", |screen| screen.contains("[1 Phases"))?;
    terminal.key("q")?;
    check_given_back(&terminal)
}

#[test]
fn signals_that_kill_give_the_terminal_back_first() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for signal in [Signal::SIGSEGV, Signal::SIGABRT, Signal::SIGXCPU] {
        let Some(terminal) = terminal()? else { return Ok(()) };
        settings(&terminal, "before")?;
        terminal.line("ulimit -c 0")?;
        terminal.line(&format!("{} --marks none; echo code=$?", path(&binaries::profiler()?)))?;
        terminal.wait_for("the interface", |screen| screen.contains("[1 Phases"))?;
        kill(profiler_in(&terminal)?, signal)?;
        let code = format!("code={}", 128 + signal as i32);
        terminal.wait_for("how it ended", |screen| screen.contains(&code))?;
        check_as_before(&terminal)?;
    }
    Ok(())
}

#[test]
fn names_cannot_act_on_the_terminal() -> Result<()> {
    let Some(terminal) = terminal()? else { return Ok(()) };
    settings(&terminal, "before")?;
    let trace = terminal.folder().join("trace.txt");
    let name = "\x1b]2;taken\x07\x1b[2J\u{9b}31m\u{202e}";
    let line = |time, mark: &str| format!(" nn{name}-7 (7) [000] .... {time}: tracing_mark_write: {mark}\n");
    let begins = ["B|7|[NN_LA_PO]case", "B|7|[NN_LR_PE]run"];
    let begins = begins.map(|mark| line("1.000000", &format!("{mark}{name}")));
    fs::write(
        &trace,
        begins.concat() + &line("1.100000", "E|7") + &line("1.200000", "E|7|odd") + &line("1.3", "E"),
    )?;
    let title = terminal.value("pane_title")?;
    terminal.line(&format!("{} replay {}", path(&binaries::profiler()?), trace.display()))?;
    terminal.wait_for("the phases", |screen| {
        screen.contains("[1 Phases") && screen.contains(r"nn\x1b]2;taken\x07\x1b[2J")
    })?;
    for key in ["2", "3", "4", "Enter", "5", "6", "d"] {
        terminal.key(key)?;
        terminal.wait_for("the view", |screen| screen.contains("replay"))?;
    }
    assert_eq!(terminal.value("pane_title")?, title);
    // Not by Escape: a key directly after it would be one with Alt.
    terminal.key("d")?;
    terminal.wait_for("no overlay", |screen| !screen.contains("Esc closes"))?;
    terminal.key("q")?;
    check_given_back(&terminal)?;
    assert_eq!(terminal.value("pane_title")?, title);
    Ok(())
}

/// The kernel announces who writes to a probed file by a signal, which would end most programs.
#[test]
fn a_probed_file_can_be_written_to_under_the_screen() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(terminal) = terminal()? else { return Ok(()) };
    let library = terminal.folder().join("library.so");
    let compiler = ["cc", "-std=c99", "-O2", "-shared", "-fPIC"];
    native::compile(&compiler, &[&native::source("library.c")], &library)?;
    settings(&terminal, "before")?;
    let (profiler, workload) = (path(&binaries::profiler()?), path(&binaries::workload()?));
    let lib = path(&library);
    terminal.line(&format!("{profiler} --interval 300ms --lib {lib} -- {workload} --seconds 60 --quiet"))?;
    let has_phases = |screen: &str| screen.contains("[1 Phases") && screen.contains("Execution");
    terminal.wait_for("the phases", has_phases)?;
    for byte in [b"a", b"b"] {
        OpenOptions::new().append(true).open(&library)?.write_all(byte)?;
    }
    // It goes on: after another view, too.
    terminal.key("2")?;
    terminal.wait_for("the CPUs", |screen| screen.contains("[2 CPUs") && screen.contains("cpu0"))?;
    terminal.key("q")?;
    check_given_back(&terminal)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
