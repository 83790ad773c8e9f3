//! The profiler's memory stays within its bound under floods from a target or a file: of unique names, counters,
//! hand-overs, slices, accounts, threads and processes, and of sections that never end.
//!
//! `cargo xtask soak` runs the same for any length of time ([`VARIABLE`]).

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::{
    resource::{UsageWho, getrusage},
    signal::Signal,
};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    layer::{Layer, Phase},
};
use nntrace_tests::{
    binaries,
    child::Child,
    live,
    profiler::{Profiler, Run},
    snapshot,
};
use nntrace_user::report::snapshot::{Snapshot, TableRow};

/// Variable with the seconds of each live flood, by default [`SECONDS`]; the rounds of files scale with it.
const VARIABLE: &str = "NNTRACE_SOAK_SECONDS";
/// Seconds of a live flood in the tests.
const SECONDS: u64 = 3;
/// Processes of a file in the tests; other floods have a quarter as many rounds.
const PROCESSES: u64 = 200_000;
/// Time limit for processing a flood.
const LIMIT: Duration = Duration::from_hours(1);
/// Variable that is set in the process of the test that measures all of its children.
const ALONE: &str = "NNTRACE_MEMORY_ALONE";
/// Memory for tables, MiB.
const MEMORY: u64 = 16;
/// Memory of the program beside its tables, MiB; see the documentation on costs.
const BASE: u64 = 32;
/// Memory of the program beside its tables in a live run, MiB: with rings, the kernel programs and the data read to
/// load them.
const LIVE_BASE: u64 = 64;

fn seconds() -> Result<u64> {
    match std::env::var(VARIABLE) {
        Ok(text) => text.parse().with_context(|| format!("{VARIABLE}={text}")),
        Err(_) => Ok(SECONDS),
    }
}

/// Returns the peak memory of all programs that this one waited for, MiB.
fn peak() -> Result<u64> {
    Ok(u64::try_from(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss())? / 1024)
}

fn ensure_within(flood: &str, base: u64) -> Result<()> {
    let peak = peak()?;
    println!("{flood}: {peak} MiB at most until now");
    ensure!(peak <= base + MEMORY, "{flood}: {peak} MiB, more than {base} and {MEMORY} for tables");
    Ok(())
}

/// Replays a trace with rounds written by `round`, from time (us) and number.
fn replay(
    flood: &str,
    args: &[&str],
    rounds: u64,
    round: impl Fn(&mut dyn FnMut(u32, u32, &str), u64) -> Result<()>,
) -> Result<Snapshot> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("flood.txt");
    let mut out = BufWriter::new(File::create(&path)?);
    let mut us = 1_000_000_u64;
    for number in 0..rounds {
        let mut failed = Ok(());
        let mut write = |tid: u32, pid: u32, event: &str| {
            us += 7;
            let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
            let written =
                writeln!(out, "  worker-{tid} ({pid:>5}) [000] ...1. {seconds}.{fraction:06}: {event}");
            if written.is_err() {
                failed = written;
            }
        };
        round(&mut write, number)?;
        failed?;
    }
    out.flush()?;
    let snapshot = replay_file(&path, args)?;
    ensure_within(flood, BASE)?;
    Ok(snapshot)
}

fn replay_file(path: &Path, args: &[&str]) -> Result<Snapshot> {
    let mut command = Command::new(binaries::profiler()?);
    let memory = format!("{MEMORY}M");
    command.arg("replay").arg(path).args(["--json", "--memory", &memory]).args(args);
    let ended = Child::start(&mut command)?.wait_for(LIMIT)?.expect_code(0)?;
    snapshot::read(&ended.stdout)
}

fn mark(payload: &str) -> String {
    format!("tracing_mark_write: {payload}")
}

/// Returns the number of sections of all functions.
fn sections(snapshot: &Snapshot) -> u64 {
    snapshot.functions.iter().map(|row| row.count).sum()
}

#[test]
fn files_with_more_of_everything_than_there_is_room_for() -> Result<()> {
    // The peak is that of all children, those of the other tests as well: this test has a process of its own.
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe()?);
        alone.args([
            "memory::files_with_more_of_everything_than_there_is_room_for",
            "--exact",
            "--nocapture",
        ]);
        let ended = Child::start(alone.env(ALONE, "1"))?.wait_for(LIMIT)?;
        print!("{}", ended.text());
        return ended.expect_code(0).map(drop);
    }
    let processes = PROCESSES * (seconds()? / SECONDS).max(1);
    let rounds = processes / 4;
    let end = mark("E|1");

    let snapshot = replay("processes", &[], processes, |write, number| {
        let id = 100 + number as u32;
        write(id, id, &mark("B|1|[NN_LR_PE]run"));
        write(id, id, &end);
        Ok(())
    })?;
    assert_eq!(sections(&snapshot), processes);
    let total: u64 = snapshot.functions.iter().map(|row| row.total_ns).sum();
    assert_eq!(
        (total, snapshot.phases.iter().map(|row| row.count).sum::<u64>()),
        (processes * 7_000, processes)
    );
    let of_report = snapshot.reports[0].total_ns.get(TableRow::Layer(Layer::Runtime), Phase::Execution);
    assert_eq!(of_report, (processes * 7_000).cast_signed());
    assert!(
        snapshot.loss.summed["phases"] > 0 && snapshot.functions.iter().any(|row| row.name == "(others)")
    );
    assert!(snapshot.notes.iter().any(|note| note.contains("--memory")), "{:?}", snapshot.notes);

    let snapshot = replay("names", &["--missing", "--explain", "main"], rounds, |write, number| {
        write(7, 7, &mark(&format!("B|1|[NN_LR_PE]flood_{number}")));
        write(7, 7, &end);
        // A recurring function keeps its own row.
        write(7, 7, &mark("B|1|[NN_LR_PE]main"));
        write(7, 7, &end);
        Ok(())
    })?;
    assert_eq!(sections(&snapshot), 2 * rounds);
    let named = snapshot.functions.iter().find(|row| row.name == "main").context("main is lost")?;
    assert_eq!((named.count, named.total_ns, named.is_partial), (rounds, rounds * 7_000, false));
    assert!(snapshot.loss.summed["functions"] > rounds / 2, "{:?}", snapshot.loss);

    let snapshot = replay("accounts", &["--by", "img"], rounds, |write, number| {
        write(7, 7, &mark(&format!("B|1|[NN_LR_PE]f{number}#acct=a{number}#img=i{number}#iter={number}")));
        write(7, 7, &end);
        Ok(())
    })?;
    assert_eq!(snapshot.accounts.iter().map(|row| row.exclusive_ns).sum::<u64>(), rounds * 7_000);
    assert_eq!(snapshot.groups.iter().map(|row| row.total_ns).sum::<u64>(), rounds * 7_000);

    let snapshot = replay("hand-overs, counters and slices", &[], rounds, |write, number| {
        write(7, 7, &mark(&format!("I|1|nn.send#h={number}")));
        write(7, 7, &mark(&format!("C|1|counter_{number}|1")));
        write(7, 7, &mark(&format!("S|1|slice|{number}")));
        write(7, 7, &mark("C|1|steady|3"));
        Ok(())
    })?;
    assert_eq!(snapshot.hand_overs.context("nothing was handed over")?.sent, rounds);
    assert_eq!(snapshot.counters.iter().map(|row| row.count).sum::<u64>(), 2 * rounds);
    let steady = snapshot.counters.iter().find(|row| row.name == "steady").context("the counter is lost")?;
    assert_eq!((steady.count, steady.last), (rounds, Some(3)));
    assert!(["hand_overs", "tracks", "open_slices"].iter().all(|table| snapshot.loss.summed[*table] > 0));

    let snapshot = replay("sections that never end", &[], rounds, |write, number| {
        let tid = 100 + number as u32;
        write(tid, 7, &mark("B|1|[NN_LR_PE]open#acct=foo"));
        Ok(())
    })?;
    assert!(
        snapshot.diagnostics.iter().any(|row| row.kind == DiagnosticKind::TableFull),
        "{:?}",
        snapshot.diagnostics
    );

    let fields = |number: u64| {
        let (tid, next) = (100 + number, 101 + number);
        format!(
            "prev_comm=w prev_pid={tid} prev_prio=120 prev_state=X ==> next_comm=w next_pid={next} next_prio=120"
        )
    };
    let snapshot = replay("threads", &[], rounds, |write, number| {
        write(100 + number as u32, 7, &format!("sched_switch: {}", fields(number)));
        Ok(())
    })?;
    assert!(
        snapshot.notes.iter().any(|note| note.contains("threads that had ended")),
        "{:?}",
        snapshot.notes
    );
    Ok(())
}

#[test]
fn targets_that_make_more_of_everything_than_there_is_room_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let seconds = seconds()?;
    for (what, args) in [
        ("names", &[][..]),
        ("accounts", &["--by", "img", "--missing"]),
        ("iterations", &[]),
        ("sends", &[]),
        ("counters", &[]),
        ("slices", &[]),
        ("begins", &[]),
        ("threads", &["--level", "sched"]),
    ] {
        let flood = [env!("CARGO_BIN_EXE_mark-flood"), "--threads", "2", "--what", what, "--seconds"];
        let seconds = seconds.to_string();
        let memory = format!("{MEMORY}M");
        let profiler = Profiler::new()?.limit(LIMIT).args(["--memory", &memory]).args(args);
        let Run { snapshot, ended } = profiler.launch(flood.into_iter().chain([seconds.as_str()]))?;
        let text = ended.expect_code(0)?.text();
        let rounds: u64 =
            text.lines().find_map(|line| line.strip_prefix("done ")?.parse().ok()).context(text)?;
        ensure!(rounds > 1_000, "{what}: only {rounds} rounds");
        println!(
            "{what}: {rounds} rounds, {} of {} records lost",
            snapshot.loss.records_dropped, snapshot.loss.records_produced
        );
        ensure_within(what, LIVE_BASE)?;
        if what == "iterations" {
            let [turns] = &snapshot.iterations[..] else { panic!("{:?}", snapshot.iterations) };
            ensure!(turns.slowest.len() == 20, "{turns:?}");
            ensure!(
                snapshot.loss.records_dropped > 0 || (turns.count, turns.open) == (rounds, 0),
                "{turns:?}"
            );
            let bytes = serde_json::to_vec(&snapshot)?.len();
            ensure!(bytes < 1 << 18, "a snapshot of {bytes} bytes");
        }
    }
    Ok(())
}

/// Time until the tables have all that there is, s.
const SETTLED: u64 = 10;

/// Memory and results do not grow with a run on the example network.
#[test]
fn the_profiler_is_flat_while_it_watches() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let until = seconds()?.max(SETTLED + 8);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("run.json");
    let mut profiler = Command::new(binaries::profiler()?);
    profiler.arg(format!("--json={}", file.display())).arg("--").arg(binaries::workload()?);
    profiler.args(["--quiet", "--seconds", &(until + 60).to_string()]);
    let (begin, profiler) = (Instant::now(), Child::start(&mut profiler)?);
    let memory_at = |second: u64| {
        thread::sleep(Duration::from_secs(second).saturating_sub(begin.elapsed()));
        resident(profiler.pid())
    };
    let (early, late) = (memory_at(SETTLED)?, memory_at(until)?);
    profiler.signal(Signal::SIGTERM)?;
    profiler.wait()?.expect_code(0)?;
    let bytes = std::fs::read(&file)?;
    let snapshot = snapshot::read(&bytes)?;
    let cpu = snapshot.overhead.collector_cpu_ns as f64 / snapshot.window.length_ns() as f64;
    println!(
        "{early} KiB after {SETTLED} s, {late} KiB after {until} s; {:.2} % of a CPU; a snapshot of {} bytes",
        100.0 * cpu,
        bytes.len()
    );
    ensure!(late <= early + 3_072, "{early} KiB after {SETTLED} s, {late} KiB after {until} s");
    ensure!(bytes.len() < 1 << 18, "a snapshot of {} bytes", bytes.len());
    Ok(())
}

/// Returns the resident memory of a process, KiB.
fn resident(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
