//! Speed and memory of replaying trace files.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};

use crate::{
    bench::{machine, profiler::Snapshot, release, spread::paired, table::Table, trace_text},
    run::{command, quietly, target_dir},
};

/// Size of the timed trace, bytes.
const LONG: u64 = 1_000_000_000;
/// Size of the trace whose memory is compared, bytes.
const SHORT: u64 = 100_000_000;
/// Number of events in the trace of power events.
const POWER_EVENTS: u64 = 1_000_000;

/// Measures with generated traces; `keep` leaves them where they are.
pub fn measure(rounds: u32, keep: bool) -> Result<Table> {
    let cores = cores()?;
    let create = |name: &str, bytes: u64| Trace::create(name, keep, |out| trace_text::write(out, bytes));
    let (short, long) = (create("short", SHORT)?, create("long", LONG)?);

    let mut table = Table::new("replay");
    let short_memory = replay(&short)?.usage.peak;
    // Reading the new file once leaves it in the page cache, if it fits.
    let lines = count_lines(&long)?.1;
    let long_memory = replay(&long)?.usage.peak;
    let mut times = vec![[Times::default(), Times::default()]; cores.len()];
    for _ in 0..rounds {
        for ((cpus, _), [wc, ours]) in cores.iter().zip(&mut times) {
            machine::pin_to(cpus)?;
            wc.add(&count_lines(&long)?.0);
            let run = replay(&long)?;
            ensure!(
                run.events <= lines && run.events > lines * 0.999,
                "{} has {lines} lines, of which the replay took {}",
                long.path.display(),
                run.events
            );
            ours.add(&run.usage);
        }
    }
    for ((_, on), [wc, ours]) in cores.iter().zip(&times) {
        table.row(&format!("{on}: ns per line"), &ours.wall(|seconds| seconds * 1e9 / lines));
        table.row(&format!("{on}: ns per line, CPU time"), &ours.cpu(|seconds| seconds * 1e9 / lines));
        table.row(&format!("{on}: MB/s"), &ours.wall(|seconds| long.bytes / 1e6 / seconds));
        table.row(&format!("{on}: wc -l, MB/s"), &wc.wall(|seconds| long.bytes / 1e6 / seconds));
        table.ratio(&format!("{on}: replay / wc -l"), &paired(&ours.wall, &wc.wall, |a, b| a / b));
        table.ratio(&format!("{on}: replay / wc -l, CPU time"), &paired(&ours.cpu, &wc.cpu, |a, b| a / b));
    }
    for (trace, memory) in [(&short, short_memory), (&long, long_memory)] {
        table.row(&format!("peak memory of {:.0} MB of trace, MB", trace.bytes / 1e6), &[memory]);
    }
    table.note(NOTE);
    table.note(format!("{lines} lines of {:.0} bytes on average", long.bytes / lines));
    Ok(table)
}

/// Measures power events alone, beside idlestat's import of the same file.
pub fn measure_power(rounds: u32, keep: bool) -> Result<Table> {
    let cores = cores()?;
    let trace = Trace::create("idle", keep, |out| trace_text::write_idle(out, POWER_EVENTS))?;
    let mut table = Table::new("replay of power events");
    let mut theirs = Times::default();
    let mut times = vec![[Times::default(), Times::default()]; cores.len()];
    let mut missing = None;
    count_lines(&trace)?;
    for _ in 0..rounds {
        for ((cpus, _), [wc, ours]) in cores.iter().zip(&mut times) {
            machine::pin_to(cpus)?;
            wc.add(&count_lines(&trace)?.0);
            ours.add(&replay(&trace)?.usage);
        }
        let mut idlestat = command("idlestat");
        idlestat.args(["--import", "--idle", "--frequency", "--report-format", "csv", "--output-file"]);
        match timed(idlestat.arg("/dev/null").arg("--trace-file").arg(&trace.path)) {
            Ok((usage, _)) => theirs.add(&usage),
            Err(error) => missing = Some(format!("{error:#}")),
        }
    }
    let per_event = |seconds: f64| seconds * 1e9 / POWER_EVENTS as f64;
    for ((_, on), [wc, ours]) in cores.iter().zip(&times) {
        table.row(&format!("{on}: ns per event"), &ours.wall(per_event));
        table.row(&format!("{on}: ns per event, CPU time"), &ours.cpu(per_event));
        table.ratio(&format!("{on}: replay / wc -l"), &paired(&ours.wall, &wc.wall, |a, b| a / b));
        table.ratio(&format!("{on}: replay / wc -l, CPU time"), &paired(&ours.cpu, &wc.cpu, |a, b| a / b));
        if missing.is_none() {
            let ratio = paired(&theirs.wall, &ours.wall, |theirs, ours| theirs / ours);
            table.gain(&format!("{on}: idlestat / replay"), &ratio);
        }
    }
    match missing {
        None => {
            table.row("idlestat --import, ns per event", &theirs.wall(per_event));
        }
        Some(why) => {
            table.missing("idlestat --import", "did not run");
            table.note(format!("idlestat: {why}"));
        }
    }
    table.note(NOTE);
    table.note(format!(
        "{POWER_EVENTS} cpu_idle and cpu_frequency events, {:.0} MB in idlestat's own form",
        trace.bytes / 1e6
    ));
    Ok(table)
}

/// Note on every table.
const NOTE: &str = "whole processes, from start to end where it does not say CPU time (user and system); \
                    files in the page cache";

/// Returns the CPUs to measure on, with their name: one, and two where there are two.
fn cores() -> Result<Vec<(Vec<usize>, &'static str)>> {
    let cpus = machine::allowed_cpus()?;
    let last = |count: usize| cpus.len().checked_sub(count).map(|from| cpus[from..].to_vec());
    let one = last(1).context("this program may use no CPU")?;
    Ok([Some((one, "one core")), last(2).map(|two| (two, "two cores"))].into_iter().flatten().collect())
}

/// Times of a program by round, s.
#[derive(Clone, Debug, Default)]
struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Times {
    fn add(&mut self, usage: &Usage) {
        self.wall.push(usage.wall);
        self.cpu.push(usage.cpu);
    }

    /// Returns a figure of each time from start to end.
    fn wall(&self, figure: impl Fn(f64) -> f64) -> Vec<f64> {
        self.wall.iter().copied().map(figure).collect()
    }

    /// Returns a figure of each CPU time.
    fn cpu(&self, figure: impl Fn(f64) -> f64) -> Vec<f64> {
        self.cpu.iter().copied().map(figure).collect()
    }
}

/// Trace in a file.
struct Trace {
    path: PathBuf,
    bytes: f64,
    keep: bool,
}

impl Trace {
    fn create(
        name: &str,
        keep: bool,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<Self> {
        let dir = target_dir()?.join("bench");
        let path = dir.join(format!("{name}.trace.txt"));
        let create = || -> std::io::Result<u64> {
            fs::create_dir_all(&dir)?;
            let mut file = BufWriter::new(File::create(&path)?);
            write(&mut file)?;
            file.flush()?;
            Ok(fs::metadata(&path)?.len())
        };
        let written = create();
        // Removed also where only a part could be written.
        let mut trace = Self { path, bytes: 0.0, keep };
        trace.bytes = written.with_context(|| {
            format!("{} cannot be written; is there room for 1.1 GB?", trace.path.display())
        })? as f64;
        Ok(trace)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.keep {
            // It may never have been created.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Resources that a program used.
pub(super) struct Usage {
    /// Time from start to end, s.
    pub(super) wall: f64,
    /// CPU time, s.
    pub(super) cpu: f64,
    /// Peak memory of this program, or any before it, MB.
    pub(super) peak: f64,
}

/// Resources and events of a replay.
struct Replay {
    usage: Usage,
    /// Number of events read.
    events: f64,
}

fn replay(trace: &Trace) -> Result<Replay> {
    let mut replay = command(release("nntrace-bpf")?);
    let (usage, said) = timed(replay.arg("replay").arg(&trace.path).arg("--json"))?;
    Ok(Replay { usage, events: Snapshot::parse(&said)?.number("/loss/records_drained")? })
}

/// Counts the lines; returns the resources used, and their number.
fn count_lines(trace: &Trace) -> Result<(Usage, f64)> {
    let (usage, said) = timed(command("wc").arg("-l").arg::<&Path>(&trace.path))?;
    let lines = said.split_whitespace().next().and_then(|lines| lines.parse().ok());
    Ok((usage, lines.with_context(|| format!("wc -l says `{said}`: expected a number"))?))
}

/// Runs a program; returns the resources used, and the output.
pub(super) fn timed(command: &mut Command) -> Result<(Usage, String)> {
    let used = || -> Result<(f64, f64)> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("what programs took is not known")?;
        let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok((seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss() as f64 * 1024.0 / 1e6))
    };
    let (before, _) = used()?;
    let start = Instant::now();
    let said = quietly(command)?;
    let wall = start.elapsed().as_secs_f64();
    let (after, peak) = used()?;
    Ok((Usage { wall, cpu: after - before, peak }, said))
}
