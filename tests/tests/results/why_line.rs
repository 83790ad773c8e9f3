//! The line after tables on why executions were slow: that of `why`, and only where it says something.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    live,
    profiler::Profiler,
    recording::Recording,
    trace,
};
use serde_json::Value;
use tempfile::NamedTempFile;

const SLOW_RUNS: &str = env!("CARGO_BIN_EXE_slow-runs");
/// Events of a run at most that has the line.
const MOST_EVENTS: usize = 1 << 18;

fn run(words: &[&str], file: &Path) -> Result<Ended> {
    let (command, options) = words.split_first().context("no command")?;
    let mut profiler = Profiler::new()?.args([command]).args([file]).args(options);
    Child::run(profiler.command())?.expect_code(0)
}

/// Returns the line of an output, if it has one: its last.
fn line(output: &str) -> Option<&str> {
    let found = output.lines().filter(|line| line.starts_with("why: ")).collect::<Vec<_>>();
    assert!(
        found.len() <= 1 && (found.is_empty() || found.first() == output.lines().last().as_ref()),
        "{output}"
    );
    found.first().copied()
}

#[test]
fn tables_of_a_recording_end_with_what_why_says() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let recording = Recording::of(&["--level", "sched", "--ring-size", "8192"], [SLOW_RUNS, "driver"])?;
    let folder = recording.path();
    let text = run(&["report"], &folder)?.text();
    println!("{text}");
    let shown = line(&text).context("no line")?;
    assert!(shown.starts_with("why: the slowest 1 of 10 LR_PE:infer took "), "{shown}");
    let answer: Value = serde_json::from_slice(&run(&["why", "--json"], &folder)?.stdout)?;
    let first = &answer["parts"][0];
    let cause = first["text"].as_str().context("no text")?;
    assert!(cause.contains("waited for LD_PE:execute of slow-runs ("), "{answer}");
    let more = format!("): {cause}; more: nntrace-bpf why {} --of LR_PE:infer", folder.display());
    assert!(first["certainty"] == "measured" && shown.ends_with(&more), "{shown}\n{answer}");

    // It is what `replay` says, and as the tables it is for people, about the whole run.
    assert_eq!(line(&run(&["replay", "--table", "summary"], &folder)?.text()), Some(shown));
    for words in [
        &["report", "--csv"][..],
        &["report", "--json"],
        &["report", "--name", "infer"],
        &["replay", "--json"],
    ] {
        assert_eq!(line(&run(words, &folder)?.text()), None, "{words:?}");
    }
    // The command in it shows all of it.
    let words: Vec<&str> =
        shown.split("more: nntrace-bpf ").nth(1).context("no command")?.split(' ').collect();
    let mut profiler = Profiler::new()?.args(words);
    let why = Child::run(profiler.command())?.expect_code(0)?.text();
    assert!(why.contains(cause), "{why}");

    let without = Recording::of(&[], [SLOW_RUNS, "driver"])?;
    assert_eq!(line(&run(&["report"], &without.path())?.text()), None, "context switches are not known");
    Ok(())
}

/// Returns a line of a context switch on CPU 0.
fn switch(ns: u64, (prev, state): (u32, &str), next: u32) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!(
        "     worker-{prev} ({prev:>5}) [000] d..2. {seconds}.{fraction:09}: sched_switch: prev_comm=worker prev_pid={prev} \
         prev_prio=120 prev_state={state} ==> next_comm=worker next_pid={next} next_prio=120"
    )
}

/// Returns a trace of executions that take so long, us; with context switches, the thread sleeps in each but for 10 us.
fn executions(lengths: &[u64], has_switches: bool) -> String {
    let mut text = String::new();
    for (begin, length) in (1_000_000_000..).step_by(10_000_000).zip(lengths) {
        let end = begin + length * 1_000;
        let mark = |at, payload: &str| (at, trace::line(at, 7, 7, payload));
        let mut lines = vec![mark(begin, "B|7|[NN_LR_PE]infer"), mark(end, "E|7")];
        if has_switches {
            let switch = |at, from, to| (at, switch(at, from, to));
            lines.extend([switch(begin - 1_000, (0, "R"), 7), switch(begin + 5_000, (7, "S"), 0)]);
            lines.extend([switch(end - 5_000, (0, "R"), 7), switch(end + 1_000, (7, "S"), 0)]);
        }
        lines.sort();
        for (_, line) in lines {
            text += &(line + "\n");
        }
    }
    text
}

fn file(text: &str) -> Result<NamedTempFile> {
    let file = NamedTempFile::new()?;
    fs::write(file.path(), text)?;
    Ok(file)
}

const LENGTHS: [u64; 6] = [100, 110, 90, 100, 2_100, 100];

#[test]
fn tables_of_a_trace_end_with_the_largest_cause() -> Result<()> {
    let trace = file(&executions(&LENGTHS, true))?;
    let name = trace.path().display();
    let text = run(&["replay"], trace.path())?.text();
    assert_eq!(
        line(&text).context("no line")?,
        format!(
            "why: the slowest 1 of 6 LR_PE:infer took 2.00 ms longer than typical ones; 2.00 ms (100%, unknown): asleep in \
             LR_PE:infer, for what is not known; more: nntrace-bpf why {name} --of LR_PE:infer"
        )
    );
    let text = run(&["replay", "--cluster", "big=0"], trace.path())?.text();
    assert!(line(&text).context("no line")?.ends_with("LR_PE:infer, with the options of this one"), "{text}");
    for words in [&["replay", "--json"][..], &["replay", "--table", "idle"], &["replay", "--table", "nnapi"]]
    {
        assert_eq!(line(&run(words, trace.path())?.text()), None, "{words:?}");
    }
    Ok(())
}

#[test]
fn there_is_no_line_where_why_has_nothing_to_say() -> Result<()> {
    for (lengths, has_switches, reason) in [
        (&LENGTHS[..], false, "context switches are not known"),
        (&LENGTHS[2..], true, "there are too few executions"),
        (&[100, 101, 102, 99, 100, 108], true, "the slowest one is hardly slower"),
    ] {
        let trace = file(&executions(lengths, has_switches))?;
        let text = run(&["replay"], trace.path())?.text();
        assert!(text.contains("Runtime     Execution"), "{text}");
        assert_eq!(line(&text), None, "{reason}");
    }
    Ok(())
}

#[test]
fn a_run_of_many_events_or_from_a_pipe_is_read_once() -> Result<()> {
    let few = executions(&LENGTHS, true);
    let mut profiler = Profiler::new()?.args(["replay", "-"]);
    let command = profiler.command();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" <\"$TRACE\""]).arg(command.get_program()).args(command.get_args());
    let trace = file(&few)?;
    let piped = shell.env("TRACE", trace.path()).stderr(Stdio::piped()).output()?;
    let text = String::from_utf8_lossy(&piped.stdout).into_owned();
    assert!(piped.status.success() && text.contains("Runtime     Execution"), "{piped:?}");
    assert_eq!(line(&text), None, "{text}");

    let mut many = few;
    for at in (2_000_000_000_u64..).step_by(1_000).take(MOST_EVENTS) {
        many += &(switch(at, (0, "R"), 0) + "\n");
    }
    let text = run(&["replay"], file(&many)?.path())?.text();
    assert!(text.contains("Runtime     Execution"), "{text}");
    assert_eq!(line(&text), None, "{text}");
    Ok(())
}
