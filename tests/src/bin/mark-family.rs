//! A family of processes: each starts the next generation and writes a section for each of its years, concurrently.
//! Prints `<pid> <sections>` for each of them, and `ready` when all have started.

use std::{
    env,
    io::{self, BufRead as _, Write as _},
    process::{Child, Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use nix::{
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};
use nntrace_common::{
    emit::{self, Section},
    layer::{Layer, Phase},
};

/// A family of processes that write marks.
#[derive(Debug, Parser)]
struct Cli {
    /// Way of creating a child.
    #[arg(value_enum)]
    how: How,
    /// Descendants in a row.
    #[arg(long, default_value_t = 2)]
    generations: u32,
    /// Sections that the first process writes; each generation writes one more.
    #[arg(long, default_value_t = 5)]
    sections: u32,
    /// Start all of them first; they write after a line on stdin.
    #[arg(long)]
    wait_stdin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// By fork alone, of a process that has not marked yet.
    Fork,
    /// By fork alone, of a process that has marked.
    LateFork,
    /// By fork and exec.
    Exec,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.how {
        How::Fork => forked(cli.generations, cli.sections, false),
        How::LateFork => forked(cli.generations, cli.sections, true),
        How::Exec => executed(&cli),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mark-family: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn forked(generations: u32, sections: u32, marks_first: bool) -> Result<()> {
    if marks_first || generations == 0 {
        write_sections(sections)?;
    }
    if generations == 0 {
        return say("ready");
    }
    // SAFETY: this process has one thread, so the child may do anything.
    match unsafe { fork() }.context("cannot fork")? {
        ForkResult::Child => forked(generations - 1, sections + 1, marks_first),
        ForkResult::Parent { child } => {
            if !marks_first {
                write_sections(sections)?;
            }
            let ended = waitpid(child, None).context("cannot wait for the child")?;
            ensure!(matches!(ended, WaitStatus::Exited(_, 0)), "the child failed: {ended:?}");
            Ok(())
        }
    }
}

fn executed(cli: &Cli) -> Result<()> {
    let mut child = if cli.generations > 0 { Some(next(cli)?) } else { None };
    if child.is_none() {
        say("ready")?;
    }
    if cli.wait_stdin {
        io::stdin().lock().read_line(&mut String::new())?;
        if let Some(stdin) = child.as_mut().and_then(|child| child.stdin.as_mut()) {
            writeln!(stdin, "go on")?;
        }
    }
    write_sections(cli.sections)?;
    if let Some(mut child) = child {
        let ended = child.wait()?;
        ensure!(ended.success(), "the child failed: {ended}");
    }
    Ok(())
}

/// Starts the next generation.
fn next(cli: &Cli) -> Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["exec", "--generations", &(cli.generations - 1).to_string()]);
    command.args(["--sections", &(cli.sections + 1).to_string()]);
    if cli.wait_stdin {
        command.arg("--wait-stdin").stdin(Stdio::piped());
    }
    command.spawn().context("cannot start the child")
}

fn write_sections(count: u32) -> Result<()> {
    let pid = std::process::id();
    emit::init(pid);
    for _ in 0..count {
        drop(Section::begin(Layer::Application, Phase::Execution, "live"));
    }
    say(&format!("{pid} {count}"))
}

fn say(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}
