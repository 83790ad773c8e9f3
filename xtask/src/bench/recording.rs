//! Recording a run: what is lost, what it takes, how large it is, and how fast it is read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    bench::{
        child::Running,
        pairs::compile,
        profiler::Snapshot,
        release,
        replay::{Usage, timed},
        spread::paired,
        table::Table,
        tracefs::Instance,
    },
    run::{command, on_path, quietly, target_dir},
};

/// Source of the recorded program, from the workspace's root.
const SOURCE: &str = "xtask/src/bench/recorded.c";
/// Source of the program that fills a large recording, from the workspace's root.
const PACED: &str = "xtask/src/bench/paced.c";
/// Folder of the header, from the workspace's root.
const INCLUDE: &str = "nntrace-common/include";
/// Sections in a millisecond: 200,000 marks a second.
const SECTIONS: &str = "100";
/// Time between two wakes of each CPU, us.
const NAP_US: &str = "55";
/// Length of a run, ms.
const LENGTH: &str = "5000";
/// Most bytes of a mark on disk.
const GOAL_BYTES: f64 = 12.0;
/// Least speed of reading, MB/s.
const GOAL_SPEED: f64 = 300.0;
/// Load of the large recording, as `paced` takes it: 5 million marks a second for 40 s.
const LARGE: &str = "2 1250 40000";
/// Marks that fit into the buffers of ftrace.
const FTRACE_MARKS: &str = "16000";
/// Bytes of a section's record as the kernel programs write it.
const RECORD_BYTES: f64 = 64.0;

/// Figures of a recording.
struct Recorded {
    marks: f64,
    power_events: f64,
    seconds: f64,
    lost_percent: f64,
    cpu_percent: f64,
    /// Bytes of everything but the streams of CPUs.
    mark_bytes: f64,
    power_bytes: f64,
}

/// Measures recording a program with marks and idle states, beside other recorders of the same.
pub fn measure(rounds: u32) -> Result<Table> {
    let program = compile(SOURCE, "recorded", &["-I", INCLUDE, "-pthread"])?;
    let traced = on_path("uftrace")
        .then(|| compile(SOURCE, "recorded-mcount", &["-I", INCLUDE, "-pthread", "-pg"]))
        .transpose()?;
    let (mut probed, mut express) = (Vec::new(), Vec::new());
    let (mut ftrace, mut uftrace) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        probed.push(Recorded::of(&program, "uprobe")?);
        express.push(Recorded::of(&program, "express")?);
        ftrace.push(in_ftrace()?);
        if let Some(traced) = &traced {
            uftrace.push(by_uftrace(traced)?);
        }
    }
    let mut table = Table::new("recording");
    for (way, found) in [("by probes", &probed), ("by the express lane", &express)] {
        let all = |figure: fn(&Recorded) -> f64| -> Vec<f64> { found.iter().map(figure).collect() };
        let subject = |what: &str| format!("{way}: {what}");
        table.row(&subject("marks a second"), &all(|it| it.marks / it.seconds));
        table.row(&subject("power events a second"), &all(|it| it.power_events / it.seconds));
        table.row(&subject("records lost, %"), &all(|it| it.lost_percent)).at_most(0.0);
        table.row(&subject("CPU of the recorder, % of one CPU"), &all(|it| it.cpu_percent));
        table.row(&subject("bytes a mark"), &all(|it| it.mark_bytes / it.marks)).at_most(GOAL_BYTES);
        table.row(&subject("bytes a power event"), &all(|it| it.power_bytes / it.power_events));
    }
    for (tool, found) in [("trace-cmd: bytes a mark", &ftrace), ("uftrace: bytes a call or return", &uftrace)]
    {
        if found.is_empty() {
            table.missing(tool, "not installed");
            continue;
        }
        table.row(tool, found);
        let ours: Vec<f64> = probed.iter().map(|it| it.mark_bytes / it.marks).collect();
        table.gain("  that is so many times ours", &paired(found, &ours, |theirs, ours| theirs / ours));
    }
    table.note("default rings; bytes a mark: everything in the recording but the streams of CPUs");
    table.note(
        "trace-cmd copies ftrace's buffers as they are: bytes of a write to trace_marker there, without page headers",
    );
    table.note("uftrace records the calls of the function that writes the marks");
    Ok(table)
}

/// Measures reading a large recording.
pub fn measure_reading(rounds: u32) -> Result<Table> {
    let recording = recorded_load("large-recording", LARGE)?;
    let info = info(&recording.0)?;
    let sum = |key: &str| streams(&info).map(|stream| number(stream, key)).sum::<f64>();
    let (plain, events) = (sum("plain_bytes"), sum("events"));
    let read = |subcommand: &str| -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let (mut wall, mut cpu, mut peak) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..rounds {
            let mut command = command("sh");
            command.args(["-c", "exec \"$0\" \"$1\" \"$2\" >/dev/null"]).arg(release("nntrace-bpf")?);
            let Usage { wall: seconds, cpu: used, peak: memory } =
                timed(command.arg(subcommand).arg(&recording.0))?.0;
            wall.push(seconds);
            cpu.push(used);
            peak = memory;
        }
        Ok((wall, cpu, peak))
    };
    let (report, report_cpu, report_peak) = read("report")?;
    let (print, _, print_peak) = read("print")?;
    let printed = printed_bytes(&recording.0)?;
    let speed = |bytes: f64, times: &[f64]| -> Vec<f64> {
        times.iter().map(|seconds| bytes / 1e6 / seconds).collect()
    };
    let mut table = Table::new("reading a recording");
    table
        .row(
            "report: MB of records as the kernel programs write them, a second",
            &speed(events * RECORD_BYTES, &report),
        )
        .at_least(GOAL_SPEED);
    table.row("report: MB of uncompressed blocks a second", &speed(plain, &report)).at_least(GOAL_SPEED);
    table.row("report: ns of CPU an event", &report_cpu.iter().map(|s| s * 1e9 / events).collect::<Vec<_>>());
    table.row("report: memory at most, MB", &[report_peak]);
    table.row("print: MB of output a second", &speed(printed, &print)).at_least(GOAL_SPEED);
    table.row("print: memory at most, MB", &[print_peak]);
    table.note(format!(
        "{events} events, {:.0} MB uncompressed, {:.0} MB on disk; {:.0} MB are printed",
        plain / 1e6,
        sum("stored_bytes") / 1e6,
        printed / 1e6
    ));
    Ok(table)
}

impl Recorded {
    fn of(program: &Path, marks: &str) -> Result<Self> {
        let folder = Folder::create("recording")?;
        let json = folder.0.with_extension("json");
        let mut record = command(release("nntrace-bpf")?);
        record.args(["record", "--force", "--marks", marks, "-o"]).arg(&folder.0).arg("-o").arg(&json);
        let written = written(record.arg("--").arg(program))?;
        let text = fs::read_to_string(&json).with_context(|| format!("cannot read {}", json.display()))?;
        let snapshot = Snapshot::parse(&text)?;
        let info = info(&folder.0)?;
        let marks = snapshot.number("/overhead/marks")?;
        ensure!(
            (marks - 2.0 * written).abs() <= written / 1000.0,
            "{marks} marks were seen, and {written} sections written"
        );
        let seconds = snapshot.seconds()?;
        let bytes = |is_cpu: bool| -> f64 {
            let of_cpu = |stream: &Value| stream["name"].as_str().is_some_and(|name| name.starts_with("cpu"));
            let streams = streams(&info).filter(|stream| of_cpu(stream) == is_cpu);
            streams.map(|stream| number(stream, "stored_bytes") + number(stream, "checkpoint_bytes")).sum()
        };
        Ok(Self {
            marks,
            power_events: snapshot.number("/overhead/power_events")?,
            seconds,
            lost_percent: 100.0 * snapshot.number("/loss/records_dropped")?
                / snapshot.number("/loss/records_produced")?,
            cpu_percent: snapshot.number("/overhead/collector_cpu_ns")? / 1e7 / seconds,
            mark_bytes: bytes(false),
            power_bytes: bytes(true),
        })
    }
}

/// Returns the bytes of a mark in the buffers of ftrace, whose pages `trace-cmd record` copies to its file as they are.
fn in_ftrace() -> Result<f64> {
    let buffer = Instance::create("nntrace-bench-recording")?;
    let marker = buffer.marker();
    let marker = marker.to_str().context("the path of trace_marker is no text")?;
    let mut load = Running::load(&["emit-marks", "--marks", FTRACE_MARKS, "--trace-marker", marker])?;
    let [_, _]: [f64; 2] = load.ask("trace-marker")?;
    buffer.bytes_per_entry()
}

/// Returns the bytes that uftrace writes for a call or a return.
fn by_uftrace(program: &Path) -> Result<f64> {
    let folder = Folder::create("uftrace.data")?;
    let mut record = command("uftrace");
    record.args(["record", "--no-event", "--filter=execute", "--data"]).arg(&folder.0).arg(program);
    let sections = written(&mut record)?;
    Ok(size_of_folder(&folder.0)? / (2.0 * sections))
}

/// Runs the recorded program as the last words of a command; returns the number of sections that it wrote.
fn written(record: &mut Command) -> Result<f64> {
    let printed = quietly(record.args([SECTIONS, NAP_US, LENGTH]).stderr(Stdio::null()))?;
    let line = printed.lines().find_map(|line| line.trim().parse().ok());
    line.with_context(|| format!("the recorded program printed `{printed}`: expected a number of sections"))
}

/// Records a load of the program that writes at a pace, as that takes it; returns the folder.
pub(super) fn recorded_load(name: &str, load: &str) -> Result<Folder> {
    let paced = compile(PACED, "paced", &["-I", INCLUDE, "-pthread"])?;
    let recording = Folder::create(name)?;
    let mut record = command(release("nntrace-bpf")?);
    record.args(["record", "--force", "--marks", "express", "-o"]).arg(&recording.0);
    record.args(["--", "sh", "-c", &format!("echo {load} | {}", paced.display())]);
    quietly(record.stderr(Stdio::null()))?;
    Ok(recording)
}

pub(super) fn info(recording: &Path) -> Result<Value> {
    let mut info = command(release("nntrace-bpf")?);
    let text = quietly(info.args(["info", "--json"]).arg(recording))?;
    serde_json::from_str(&text).context("`info --json` is no JSON")
}

pub(super) fn streams(info: &Value) -> impl Iterator<Item = &Value> {
    info["streams"].as_array().into_iter().flatten()
}

pub(super) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

/// Returns the number of bytes that `print` writes.
fn printed_bytes(recording: &Path) -> Result<f64> {
    let mut print = command("sh");
    print.args(["-c", "\"$0\" print \"$1\" | wc -c"]).arg(release("nntrace-bpf")?).arg(recording);
    quietly(&mut print)?.trim().parse().context("`wc -c` printed no number")
}

fn size_of_folder(folder: &Path) -> Result<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes as f64)
}

/// Folder below target/bench that is removed with this value.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// Names a folder that does not exist.
    fn create(name: &str) -> Result<Self> {
        let folder = target_dir()?.join("bench");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let folder = Self(folder.join(name));
        folder.remove();
        Ok(folder)
    }

    fn remove(&self) {
        // One of a killed run; usually there is none.
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(self.0.with_extension("json"));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}
