//! Cost of a mark to the program that writes it.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::{
    bench::{
        child::Running,
        emit_marks::Site,
        profiler::{Profiler, Snapshot},
        release,
        spread::paired,
        table::Table,
        tracefs::Instance,
    },
    run::{command, on_path},
};

/// Action of bpftrace that does nothing: what entering the kernel for a mark costs.
const EMPTY: &str = "$nothing = 0;";

/// Minimal action of bpftrace on a mark.
const COUNTING: &str = "@ = count();";

/// Minimal action that reads the mark, as every profiler of marks has to.
const READING: &str = "@[str(arg0)] = count();";

/// Time limit for attaching and detaching a probe.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time for which marks are written before they are measured: the kernel has optimised the probe by then, and the
/// profiler has switched the statistics off.
pub const WARM_UP: Duration = Duration::from_millis(500);

/// Measurements, a figure for each round.
pub struct Marks {
    /// State of the mark function with our probe.
    pub site: Site,
    off: Vec<f64>,
    profiler: Vec<f64>,
    /// Cost with the probe where bpftrace has it, on the first instruction.
    fast: Vec<f64>,
    /// Time in our kernel program, from the kernel's statistics.
    program: Vec<f64>,
    /// Share of records that found the ring full, percent.
    dropped: Vec<f64>,
    /// Empty where bpftrace is not installed.
    empty: Vec<f64>,
    /// Empty where bpftrace is not installed.
    counting: Vec<f64>,
    /// Empty where bpftrace is not installed.
    reading: Vec<f64>,
    trace_marker: Vec<f64>,
}

/// Measures all states in turn.
pub fn measure(rounds: u32, marks: u32) -> Result<Marks> {
    // Removed last: the load keeps a file of it open.
    let buffer = Instance::create("nntrace-bench-marks")?;
    let marker = buffer.marker();
    let marker = marker.to_str().context("the path of trace_marker is no text")?;
    let mut load =
        Load(Running::load(&["emit-marks", "--marks", &marks.to_string(), "--trace-marker", marker])?);
    let has_bpftrace = on_path("bpftrace");
    let mut found = Marks {
        site: Site::Nop,
        off: Vec::new(),
        profiler: Vec::new(),
        fast: Vec::new(),
        program: Vec::new(),
        dropped: Vec::new(),
        empty: Vec::new(),
        counting: Vec::new(),
        reading: Vec::new(),
        trace_marker: Vec::new(),
    };
    for _ in 0..rounds {
        found.off.push(load.round("probe")?.0);
        found.trace_marker.push(load.round("trace-marker")?.0);
        found.with_profiler(&mut load)?;
        found.fast.push(with_profiler(&mut load, &["--fast-probes"])?.0);
        if has_bpftrace {
            found.empty.push(with_bpftrace(&mut load, EMPTY)?);
            found.counting.push(with_bpftrace(&mut load, COUNTING)?);
            found.reading.push(with_bpftrace(&mut load, READING)?);
        }
    }
    Ok(found)
}

impl Marks {
    fn with_profiler(&mut self, load: &mut Load) -> Result<()> {
        let (round, site, snapshot) = with_profiler(load, &[])?;
        self.site = site;
        self.profiler.push(round);
        self.program.push(snapshot.number("/overhead/ns_per_mark")?);
        let [dropped, produced] =
            ["dropped", "produced"].map(|which| snapshot.number(&format!("/loss/records_{which}")));
        self.dropped.push(100.0 * dropped? / produced?);
        Ok(())
    }

    /// Returns all of the measurements.
    pub fn table(&self) -> Table {
        let mut table = Table::new("ns per mark");
        table.row("nobody probes", &self.off);
        table.row("nntrace-bpf --marks uprobe", &self.profiler);
        table.row("  of it in the kernel program", &self.program);
        table.row("nntrace-bpf --marks uprobe --fast-probes", &self.fast);
        // Of probes on the same instruction.
        let ratio = |other| paired(&self.fast, other, |ours, others| ours / others);
        for (name, others, goal) in [
            ("bpftrace, doing nothing", &self.empty, Some(1.6)),
            ("bpftrace, counting", &self.counting, None),
            ("bpftrace, counting by text", &self.reading, Some(1.0)),
        ] {
            if others.is_empty() {
                table.missing(name, "not installed");
                continue;
            }
            table.row(name, others);
            let row = table.ratio(&format!("  --fast-probes / {name}"), &ratio(others));
            if let Some(goal) = goal {
                row.at_most(goal);
            }
        }
        table.row("write to trace_marker", &self.trace_marker);
        table.ratio("  --fast-probes / trace_marker", &ratio(&self.trace_marker));
        table.row("records that found the ring full, %", &self.dropped);
        if self.counting.is_empty() {
            table.note("bpftrace is not installed; on Debian: apt-get install bpftrace");
        }
        table.note("one thread that does nothing but write marks; each round counts with its median part");
        table.note(
            "bpftrace probes the nop that the function begins with, as --fast-probes does; the kernel's own fast way for it kills \
             forked children on some kernels, where nntrace-bpf alone probes the next instruction",
        );
        table.note("nntrace-bpf has the kernel's BPF statistics on at the begin, and for 1 % of the time from then on");
        table
    }
}

/// Measures a round with our probe; returns its figure, the state of the mark function, and the profiler's results.
fn with_profiler(load: &mut Load, options: &[&str]) -> Result<(f64, Site, Snapshot)> {
    load.wait_for(|site| site == Site::Nop)?;
    let pid = load.0.pid().to_string();
    let (profiler, _) = Profiler::attach(&[&["--marks=uprobe", "--pid", &pid], options].concat())?;
    let (warm_up, round) = load.probed_rounds()?;
    let site = load.site()?;
    let snapshot = profiler.end()?;
    same_count("nntrace-bpf", snapshot.number("/overhead/marks")?, warm_up + round.1)?;
    Ok((round.0, site, snapshot))
}

/// Attaches bpftrace with an action that counts.
fn with_bpftrace(load: &mut Load, action: &str) -> Result<f64> {
    load.wait_for(|site| site == Site::Nop)?;
    let program = format!("uprobe:{}:tracing_mark_write {{ {action} }}", release("xtask")?.display());
    let mut bpftrace = command("bpftrace");
    bpftrace.args(["-p", &load.0.pid().to_string(), "-e", &program]);
    // It complains about limits that do not matter here.
    let bpftrace = Running::start(bpftrace.stderr(Stdio::null()))?;
    let (warm_up, round) =
        load.probed_rounds().with_context(|| format!("bpftrace does not probe: {program}"))?;
    let said = bpftrace.end(Signal::SIGINT)?;
    if action != EMPTY {
        same_count("bpftrace", counts(&said) as f64, warm_up + round.1)?;
    }
    Ok(round.0)
}

/// Returns the sum of all counts that bpftrace printed.
fn counts(said: &str) -> u64 {
    let count = |line: &str| line.strip_prefix('@')?.rsplit_once(": ")?.1.parse::<u64>().ok();
    said.lines().filter_map(count).sum()
}

/// Checks that a tool counted all marks: tools that miss marks are not compared.
fn same_count(who: &str, counted: f64, written: f64) -> Result<()> {
    let close = (counted - written).abs() <= written / 1000.0;
    ensure!(close, "{who} saw {counted} marks of {written}; is another profiler at work?");
    Ok(())
}

/// Program that writes marks.
struct Load(Running);

impl Load {
    /// Runs a round: ns per mark, and the number of marks.
    fn round(&mut self, what: &str) -> Result<(f64, f64)> {
        self.0.ask(what).map(|[ns, marks]| (ns, marks))
    }

    /// Runs rounds for [`WARM_UP`], then the one that counts. Returns the marks of the former, and that one.
    fn probed_rounds(&mut self) -> Result<(f64, (f64, f64))> {
        self.wait_for(|site| site != Site::Nop)?;
        let (begin, mut warm_up) = (Instant::now(), 0.0);
        while begin.elapsed() < WARM_UP {
            warm_up += self.round("probe")?.1;
        }
        Ok((warm_up, self.round("probe")?))
    }

    fn site(&mut self) -> Result<Site> {
        self.0.ask("site").map(|[site]| site)
    }

    /// Waits until the kernel has changed the mark function.
    fn wait_for(&mut self, wanted: impl Fn(Site) -> bool) -> Result<()> {
        let begin = Instant::now();
        loop {
            let site = self.site()?;
            if wanted(site) {
                return Ok(());
            }
            let goes_on = begin.elapsed() < PATIENCE;
            ensure!(goes_on, "the mark function still starts with a {site} after {} s", PATIENCE.as_secs());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_all_keys() {
        assert_eq!(counts("Attaching 1 probe...\n\n@: 12\n"), 12);
        assert_eq!(counts("\n@[E|7]: 4\n@[B|7|[NN_LR_PE]a: b]: 2\n"), 6);
    }
}
