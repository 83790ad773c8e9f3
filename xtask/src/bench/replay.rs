//! Speed and memory of replaying trace files.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
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
    let cpu = machine::allowed_cpus()?.last().copied().context("this program may use no CPU")?;
    // Programs started from here stay there, with all their threads.
    machine::pin(cpu)?;
    let create = |name: &str, bytes: u64| Trace::create(name, keep, |out| trace_text::write(out, bytes));
    let (short, long) = (create("short", SHORT)?, create("long", LONG)?);

    let mut table = Table::new("replay, on one core");
    let short_memory = replay(&short)?.peak;
    // Reading the new file once leaves it in the page cache, if it fits.
    let lines = count_lines(&long)?.1;
    let long_memory = replay(&long)?.peak;
    let (mut wc, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        wc.push(count_lines(&long)?.0.seconds);
        let run = replay(&long)?;
        ensure!(
            run.events <= lines && run.events > lines * 0.999,
            "{} has {lines} lines, of which the replay took {}",
            long.path.display(),
            run.events
        );
        ours.push(run.seconds);
    }
    let each = |seconds: &[f64], figure: &dyn Fn(f64) -> f64| -> Vec<f64> {
        seconds.iter().map(|&seconds| figure(seconds)).collect()
    };
    table.row("ns per line", &each(&ours, &|seconds| seconds * 1e9 / lines));
    table.row("MB/s", &each(&ours, &|seconds| long.bytes / 1e6 / seconds));
    table.row("wc -l, MB/s", &each(&wc, &|seconds| long.bytes / 1e6 / seconds));
    table.row("replay takes so many times wc -l", &paired(&ours, &wc, |ours, wc| ours / wc));
    for (trace, memory) in [(&short, short_memory), (&long, long_memory)] {
        table.row(&format!("peak memory of {:.0} MB of trace, MB", trace.bytes / 1e6), &[memory]);
    }
    table
        .note(format!("CPU time, user and system, of whole processes on CPU {cpu}; files in the page cache"));
    table.note(format!("{lines} lines of {:.0} bytes on average", long.bytes / lines));
    Ok(table)
}

/// Measures power events alone, beside idlestat's import of the same file.
pub fn measure_power(rounds: u32, keep: bool) -> Result<Table> {
    let cpu = machine::allowed_cpus()?.last().copied().context("this program may use no CPU")?;
    machine::pin(cpu)?;
    let trace = Trace::create("idle", keep, |out| trace_text::write_idle(out, POWER_EVENTS))?;
    let mut table = Table::new("replay of power events, on one core");
    let (mut wc, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut missing = None;
    count_lines(&trace)?;
    for _ in 0..rounds {
        wc.push(count_lines(&trace)?.0.seconds);
        ours.push(replay(&trace)?.seconds);
        let mut idlestat = command("idlestat");
        idlestat.args(["--import", "--idle", "--frequency", "--report-format", "csv", "--output-file"]);
        match timed(idlestat.arg("/dev/null").arg("--trace-file").arg(&trace.path)) {
            Ok((usage, _)) => theirs.push(usage.seconds),
            Err(error) => missing = Some(format!("{error:#}")),
        }
    }
    let per_event = |seconds: &[f64]| -> Vec<f64> {
        seconds.iter().map(|seconds| seconds * 1e9 / POWER_EVENTS as f64).collect()
    };
    table.row("ns per event", &per_event(&ours));
    table.row("replay takes so many times wc -l", &paired(&ours, &wc, |ours, wc| ours / wc));
    match missing {
        None => {
            table.row("idlestat --import, ns per event", &per_event(&theirs));
            table.row(
                "idlestat takes so many times replay",
                &paired(&theirs, &ours, |theirs, ours| theirs / ours),
            );
        }
        Some(why) => {
            table.missing("idlestat --import", "did not run");
            table.note(format!("idlestat: {why}"));
        }
    }
    table.note(format!(
        "{POWER_EVENTS} cpu_idle and cpu_frequency events, {:.0} MB in idlestat's own form; CPU time of whole processes",
        trace.bytes / 1e6
    ));
    Ok(table)
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
struct Usage {
    /// CPU time, s.
    seconds: f64,
    /// Peak memory of this program, or any before it, MB.
    peak: f64,
}

/// Resources and events of a replay.
struct Replay {
    seconds: f64,
    peak: f64,
    /// Number of events read.
    events: f64,
}

fn replay(trace: &Trace) -> Result<Replay> {
    let mut replay = command(release("nntrace-bpf")?);
    let (Usage { seconds, peak }, said) = timed(replay.arg("replay").arg(&trace.path).arg("--json"))?;
    Ok(Replay { seconds, peak, events: Snapshot::parse(&said)?.number("/loss/records_drained")? })
}

/// Counts the lines; returns the resources used, and their number.
fn count_lines(trace: &Trace) -> Result<(Usage, f64)> {
    let (usage, said) = timed(command("wc").arg("-l").arg::<&Path>(&trace.path))?;
    let lines = said.split_whitespace().next().and_then(|lines| lines.parse().ok());
    Ok((usage, lines.with_context(|| format!("wc -l says `{said}`: expected a number"))?))
}

/// Runs a program; returns the resources used, and the output.
fn timed(command: &mut Command) -> Result<(Usage, String)> {
    let used = || -> Result<(f64, f64)> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("what programs took is not known")?;
        let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok((seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss() as f64 * 1024.0 / 1e6))
    };
    let (before, _) = used()?;
    let said = quietly(command)?;
    let (after, peak) = used()?;
    Ok((Usage { seconds: after - before, peak }, said))
}
