//! Writes begins and ends, nested two deep, as fast as it can: a runtime's execution around a computation of the CPU
//! fallback. Prints `ready` at first, and `done <N>` at the end: so many of each were written.

use std::{
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use clap::Parser;
use nntrace_common::{
    emit::{self, Payload},
    layer::{Layer, Phase},
};

/// Marks of one round: two begins, two ends.
const ROUND: u64 = 4;

/// Writes marks as fast as it can.
#[derive(Debug, Parser)]
struct Cli {
    /// Threads that write.
    #[arg(long, default_value_t = 4)]
    threads: u64,
    /// Marks of all threads together.
    #[arg(long, default_value_t = 1_000_000)]
    marks: u64,
    /// Start at a line on stdin.
    #[arg(long)]
    wait_stdin: bool,
    /// Go on, past `--marks`, until there is a line on stdin.
    #[arg(long, conflicts_with_all = ["wait_stdin", "marks"])]
    until_stdin: bool,
    /// Microseconds between two rounds.
    #[arg(long, default_value_t = 0)]
    pause_us: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mark-flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> io::Result<()> {
    emit::init(std::process::id());
    say("ready")?;
    if cli.wait_stdin {
        wait_for_line()?;
    }
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let rounds = if cli.until_stdin { u64::MAX } else { cli.marks / ROUND / cli.threads };
    thread::scope(|scope| {
        for _ in 0..cli.threads {
            scope.spawn(|| done.fetch_add(flood(rounds, cli.pause_us, &stop), Ordering::Relaxed));
        }
        if cli.until_stdin {
            let waited = wait_for_line();
            stop.store(true, Ordering::Relaxed);
            waited?;
        }
        Ok::<_, io::Error>(())
    })?;
    say(&format!("done {}", done.into_inner()))
}

/// Writes rounds of marks; returns how many.
fn flood(rounds: u64, pause_us: u64, stop: &AtomicBool) -> u64 {
    let outer = Payload::begin(Layer::Runtime, Phase::Execution, "flood");
    let inner = Payload::begin(Layer::CpuFallback, Phase::Computation, "wave");
    let end = Payload::end();
    let mut done = 0;
    while done < rounds && !stop.load(Ordering::Relaxed) {
        outer.write();
        inner.write();
        end.write();
        end.write();
        done += 1;
        if pause_us > 0 {
            thread::sleep(Duration::from_micros(pause_us));
        }
    }
    done
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// The end of the input counts as a line.
fn wait_for_line() -> io::Result<()> {
    io::stdin().lock().read_line(&mut String::new()).map(drop)
}
