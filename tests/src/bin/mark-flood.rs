//! Writes marks as fast as it can: begins and ends, nested two deep, a runtime's execution around a computation of
//! the CPU fallback; or marks with unique names, or ones that are never completed. Prints `ready` at first, and
//! `done <N>` at the end, with the number of rounds written.

use std::{
    ffi::CString,
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use clap::{Parser, ValueEnum};
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
    /// Marks of one round.
    #[arg(long, value_enum, default_value_t = What::Sections)]
    what: What,
    /// Go on, past `--marks`, for this many seconds.
    #[arg(long, conflicts_with_all = ["until_stdin", "marks"])]
    seconds: Option<u64>,
    /// Microseconds between two rounds.
    #[arg(long, default_value_t = 0)]
    pause_us: u64,
}

/// Marks of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// A section in a section.
    Sections,
    /// A section with a name of its own.
    Names,
    /// A section with an account, a value and a name of its own.
    Accounts,
    /// An iteration with a section in it.
    Iterations,
    /// A hand-over that nobody takes.
    Sends,
    /// A counter with a name of its own.
    Counters,
    /// An asynchronous slice that never ends.
    Slices,
    /// A section that never ends.
    Begins,
    /// A thread with one section.
    Threads,
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
    let is_endless = cli.until_stdin || cli.seconds.is_some();
    let rounds = if is_endless { u64::MAX } else { cli.marks / ROUND / cli.threads };
    thread::scope(|scope| {
        for thread in 0..cli.threads {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || {
                let rounds = match cli.what {
                    What::Sections => flood(rounds, cli.pause_us, stop),
                    what => numbered(what, thread, rounds, cli.pause_us, stop),
                };
                done.fetch_add(rounds, Ordering::Relaxed)
            });
        }
        if let Some(seconds) = cli.seconds {
            thread::sleep(Duration::from_secs(seconds));
            stop.store(true, Ordering::Relaxed);
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

/// Writes rounds of marks; returns their number.
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

/// Writes rounds of marks with numbers, each of which is used once; returns the number of rounds.
fn numbered(what: What, thread: u64, rounds: u64, pause_us: u64, stop: &AtomicBool) -> u64 {
    let end = Payload::end();
    let section = |name: std::fmt::Arguments<'_>| Payload::begin_args(Layer::Runtime, Phase::Execution, name);
    let mut done = 0;
    while done < rounds && !stop.load(Ordering::Relaxed) {
        match what {
            What::Sections => {}
            What::Names => {
                section(format_args!("flood_{thread}_{done}")).write();
                end.write();
            }
            What::Accounts => {
                let begin = section(format_args!("flood_{thread}_{done}"));
                begin.with("acct", format_args!("a{done}")).with("img", format_args!("i{done}")).write();
                end.write();
            }
            What::Iterations => {
                section(format_args!("turn")).with("iter", thread << 40 | done).write();
                section(format_args!("step")).write();
                end.write();
                end.write();
            }
            What::Sends => Payload::instant("nn.send").with("h", thread << 40 | done).write(),
            What::Counters => Payload::counter(&format!("flood_{thread}_{done}"), 1).write(),
            What::Slices => emit::mark(&slice(thread, done)),
            What::Begins => section(format_args!("begin")).with("acct", "foo").write(),
            What::Threads => {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        section(format_args!("short")).write();
                        end.write();
                    });
                });
            }
        }
        done += 1;
        if pause_us > 0 {
            thread::sleep(Duration::from_micros(pause_us));
        }
    }
    done
}

/// Returns the begin of an asynchronous slice.
fn slice(thread: u64, number: u64) -> CString {
    let text = format!("S|{}|flood|{thread}{number:012}", std::process::id());
    CString::new(text).unwrap_or_default()
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Waits for a line; the end of the input counts as one.
fn wait_for_line() -> io::Result<()> {
    io::stdin().lock().read_line(&mut String::new()).map(drop)
}
