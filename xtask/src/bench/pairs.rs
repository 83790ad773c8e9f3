//! Cost of a section to the program that writes it: begin and end, by `nntrace.h` and by the Rust guard.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::{
    bench::{child::Running, marks::WARM_UP, profiler::Profiler, spread::paired, table::Table},
    run::{command, on_path, quietly, target_dir},
};

/// Time limit for attaching and detaching a probe.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pairs in a round without a probe, so that the clock is precise enough.
const UNHEARD: u32 = 20_000_000;
/// Folder of the header, from the workspace's root.
const INCLUDE: &str = "nntrace-common/include";
/// Source of the C program, from the workspace's root.
const SOURCE: &str = "xtask/src/bench/pairs.c";

/// Measures all states in turn.
pub fn measure(rounds: u32, pairs: u32) -> Result<Table> {
    let program = program()?;
    let older = build("pairs-older", &["-I", &older_header()?])?;
    let (has_bpftrace, has_uftrace) = (on_path("bpftrace"), on_path("uftrace"));
    let traced = if has_uftrace { Some(build("pairs-mcount", &["-I", INCLUDE, "-pg"])?) } else { None };
    let mut header = start(&program)?;
    let mut older = start(&older)?;
    let mut guard = Running::load(&["emit-pairs"])?;
    let mut to_ftrace = Running::start(command(&program).env("NNTRACE_TO_FTRACE", "1"))?;
    let mut uftrace = traced.as_deref().map(under_uftrace).transpose()?;

    let mut figures: [Vec<f64>; 12] = Default::default();
    for _ in 0..rounds {
        let [
            header_off,
            guard_off,
            clocks,
            header_lane,
            guard_lane,
            header_on,
            guard_on,
            fast,
            older_on,
            counting,
            ftrace,
            called,
        ] = &mut figures;
        header_off.push(round(&mut header, "pairs", UNHEARD)?);
        guard_off.push(round(&mut guard, "pairs", UNHEARD)?);
        clocks.push(round(&mut header, "clocks", pairs)?);
        // A process of its own: in one that another profiler has read lanes of, the next one waits for the end of the leases.
        header_lane.push(profiled(&mut start(&program)?, pairs, &["--marks=express"])?);
        guard_lane.push(profiled(&mut Running::load(&["emit-pairs"])?, pairs, &["--marks=express"])?);
        header_on.push(profiled(&mut header, pairs, &["--marks=uprobe"])?);
        guard_on.push(profiled(&mut guard, pairs, &["--marks=uprobe"])?);
        fast.push(profiled(&mut header, pairs, &["--marks=uprobe", "--fast-probes"])?);
        older_on.push(profiled(&mut older, pairs / 10, &["--marks=uprobe"])?);
        if has_bpftrace {
            counting.push(counted(&mut header, &program, pairs)?);
        }
        ftrace.push(round(&mut to_ftrace, "pairs", pairs)?);
        if let Some(uftrace) = &mut uftrace {
            called.push(round(uftrace, "calls", pairs)?);
        }
    }
    // The program under uftrace ends with its input; when asked to end, uftrace would wait for that.
    drop(uftrace);

    let [
        header_off,
        guard_off,
        clocks,
        header_lane,
        guard_lane,
        header_on,
        guard_on,
        fast,
        older_on,
        counting,
        ftrace,
        called,
    ] = &figures;
    let mut table = Table::new("ns per begin and end");
    table.row("nntrace.h, nobody listens", header_off).at_most(1.0);
    table.row("Rust mark!, nobody listens", guard_off).at_most(1.0);
    table.row("two readings of the clock alone", clocks);
    table.row("nntrace.h, express lane", header_lane);
    table.row("Rust mark!, express lane", guard_lane);
    table.row("nntrace.h, --marks uprobe", header_on);
    table.row("Rust mark!, --marks uprobe", guard_on);
    table.gain(
        "  the express lane is so many times cheaper",
        &paired(header_on, header_lane, |probe, lane| probe / lane),
    );
    table.row("nntrace.h, --marks uprobe --fast-probes", fast);
    table.ratio(
        "  without that it is so many times as much",
        &paired(header_on, fast, |safe, fast| safe / fast),
    );
    table.row("nntrace.h without its second cheap place, --marks uprobe", older_on);
    table.ratio("  that is so many times --fast-probes", &paired(older_on, fast, |older, fast| older / fast));
    if has_bpftrace {
        table.row("nntrace.h, bpftrace counting", counting);
        table.ratio(
            "  --marks uprobe is so many times that",
            &paired(header_on, counting, |ours, others| ours / others),
        );
    } else {
        table.missing("nntrace.h, bpftrace counting", "not installed");
    }
    table.row("nntrace.h, NNTRACE_TO_FTRACE=1", ftrace);
    if has_uftrace {
        table.row("uftrace, call and return of a function", called);
    } else {
        table.missing("uftrace, call and return of a function", "not installed");
    }
    table.note("one thread that does nothing else; each round counts with its median part");
    Ok(table)
}

/// Compiles the C program with the header as it is; returns its path.
pub fn program() -> Result<PathBuf> {
    build("pairs", &["-I", INCLUDE])
}

/// Starts a program that was compiled.
pub fn start(program: &Path) -> Result<Running> {
    Running::start(&mut command(program))
}

/// Compiles the C program.
fn build(name: &str, flags: &[&str]) -> Result<PathBuf> {
    compile(SOURCE, name, flags)
}

/// Compiles a C program of a name; returns its path.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let folder = target_dir()?.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let program = folder.join(name);
    let mut cc = command("cc");
    cc.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", source, "-o"]).arg(&program);
    quietly(cc.args(flags))?;
    Ok(program)
}

/// Writes the header as it was when its mark function had only one cheap place; returns its folder.
fn older_header() -> Result<String> {
    let header = Path::new(INCLUDE).join("nntrace.h");
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let folder = target_dir()?.join("bench/older");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let text =
        text.replace("0x00, 0x90, 0xc3", "0x00, 0xc3").replace("0xccc3900000441f0f", "0xccccc30000441f0f");
    fs::write(folder.join("nntrace.h"), text)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    Ok(folder.display().to_string())
}

/// Starts the program with its calls recorded.
fn under_uftrace(program: &Path) -> Result<Running> {
    let folder = target_dir()?.join("bench/uftrace.data");
    let mut uftrace = command("uftrace");
    uftrace.args(["record", "--no-event", "--filter=called", "--data"]).arg(folder).arg(program);
    Running::start(&mut uftrace)
}

/// Runs a round: ns per pair.
pub fn round(load: &mut Running, what: &str, count: u32) -> Result<f64> {
    load.ask(&format!("{what} {count}")).map(|[ns, _]: [f64; 2]| ns)
}

/// Runs rounds for [`WARM_UP`], then the one that counts.
fn heard(load: &mut Running, count: u32) -> Result<f64> {
    wait_until_heard(load, true)?;
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        round(load, "pairs", count)?;
    }
    round(load, "pairs", count)
}

/// Runs a round with the profiler attached.
fn profiled(load: &mut Running, count: u32, options: &[&str]) -> Result<f64> {
    wait_until_heard(load, false)?;
    let pid = load.pid().to_string();
    let (profiler, _) = Profiler::attach(&[&["--pid", &pid], options].concat())?;
    let ns = heard(load, count)?;
    profiler.end()?;
    Ok(ns)
}

/// Runs a round while bpftrace counts marks.
fn counted(load: &mut Running, program: &Path, count: u32) -> Result<f64> {
    wait_until_heard(load, false)?;
    let action = format!("uprobe:{}:tracing_mark_write {{ @ = count(); }}", program.display());
    let mut bpftrace = command("bpftrace");
    bpftrace.args(["-p", &load.pid().to_string(), "-e", &action]);
    // It complains about limits that do not matter here.
    let bpftrace = Running::start(bpftrace.stderr(Stdio::null()))?;
    let ns = heard(load, count).with_context(|| format!("bpftrace does not probe: {action}"))?;
    bpftrace.end(Signal::SIGINT)?;
    Ok(ns)
}

/// Waits until marks are probed, or no longer.
pub fn wait_until_heard(load: &mut Running, wanted: bool) -> Result<()> {
    let begin = Instant::now();
    // The first mark determines where marks go.
    round(load, "pairs", 1000)?;
    loop {
        let [listens]: [u32; 1] = load.ask("listens")?;
        if (listens == 1) == wanted {
            return Ok(());
        }
        let what =
            if wanted { "nobody probes the mark function" } else { "somebody probes the mark function" };
        ensure!(begin.elapsed() < PATIENCE, "after {} s {what}", PATIENCE.as_secs());
        thread::sleep(Duration::from_millis(10));
    }
}
