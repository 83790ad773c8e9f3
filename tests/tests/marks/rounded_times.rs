//! Marks within one microsecond, the resolution of the text of ftrace: random streams with times rounded to microseconds
//! give the results of the same streams in nanoseconds, in every view and export.
//!
//! Marks are nanoseconds apart, or seconds: what is taken for something else shows as seconds.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{child::Child, profiler::Profiler, trace::Random};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// Streams, each a process of its own.
const STREAMS: u32 = 2_000;
/// Streams in one trace.
const TOGETHER: u32 = 50;
/// Difference of times that rounding may make in all sections of a trace, ns.
const ROUNDING: f64 = 100e6;

/// Reading of what one view makes of a trace.
type View = fn(&Path) -> Result<Value>;

/// Event of a stream.
struct Event {
    /// Whole seconds, and nanoseconds of the microsecond.
    time: (u64, u64),
    tid: u64,
    mark: String,
}

/// Writer of the marks of one process.
struct Stream<'a> {
    random: Random,
    pid: u64,
    time: (u64, u64),
    /// Sections that are open on each thread.
    open: Vec<u64>,
    handles: Vec<u64>,
    iteration: u64,
    events: &'a mut Vec<Event>,
}

impl Stream<'_> {
    const NAMES: [&'static str; 5] =
        ["[NN_LA_PO]capture", "[NN_LR_PE]infer", "[NN_LD_PE]conv", "[NN_LR_PC]pool", "[NN_LC_PCO]show"];

    fn percent(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn advance(&mut self, pauses: u64) {
        if self.percent(pauses) || self.time.1 > 900 {
            self.time = (self.time.0 + 1 + self.random.below(9), 0);
        } else {
            self.time.1 += 1 + self.random.below(15);
        }
    }

    fn write(&mut self, thread: usize, mark: String) {
        self.events.push(Event { time: self.time, tid: self.pid + thread as u64, mark });
    }

    /// One of the last handles.
    fn handle(&mut self) -> Option<u64> {
        let recent = self.handles.len().min(3);
        let back = 1 + self.random.below(recent.max(1) as u64) as usize;
        self.handles.len().checked_sub(back).map(|at| self.handles[at])
    }

    fn attributes(&mut self) -> String {
        let mut text = String::new();
        if self.percent(25) {
            text.push_str(if self.percent(50) { "#acct=alice" } else { "#acct=bob" });
        }
        if self.percent(25) {
            let _ = write!(text, "#iter={}", self.iteration);
            self.iteration += 1;
        }
        if self.percent(20)
            && let Some(handle) = self.handle()
        {
            let _ = write!(text, "#h={handle}");
        }
        text
    }

    fn step(&mut self) {
        self.advance(40);
        let thread = self.random.below(self.open.len() as u64) as usize;
        let pid = self.pid;
        match self.random.below(100) {
            0..42 if self.open[thread] < 6 => {
                let name = Self::NAMES[self.random.below(5) as usize];
                let attributes = self.attributes();
                self.open[thread] += 1;
                self.write(thread, format!("B|{pid}|{name}{attributes}"));
            }
            42..47 if self.open[thread] < 6 => {
                self.open[thread] += 1;
                self.write(thread, format!("B|{pid}|foreign"));
            }
            47..75 if self.open[thread] > 0 => {
                self.open[thread] -= 1;
                self.write(thread, format!("E|{pid}"));
            }
            75..87 => {
                let handle = self.handles.len() as u64 + 1;
                self.handles.push(handle);
                self.write(thread, format!("I|{pid}|nn.send#h={handle}"));
            }
            87.. => {
                if let Some(handle) = self.handle() {
                    self.write(thread, format!("I|{pid}|nn.recv#h={handle}"));
                }
            }
            _ => {}
        }
    }

    /// Ends most of what is open.
    fn finish(&mut self) {
        for thread in 0..self.open.len() {
            while self.open[thread] > 0 && self.percent(90) {
                self.advance(40);
                self.open[thread] -= 1;
                self.write(thread, format!("E|{}", self.pid));
            }
        }
    }
}

/// Events of some streams, one after the other.
fn events(first: u32) -> Vec<Event> {
    let mut events = Vec::new();
    let mut time = (1, 0);
    for number in first..first + TOGETHER {
        let mut random = Random::new(u64::from(number) + 1);
        let threads = 1 + random.below(4) as usize;
        let steps = 6 + random.below(55);
        let mut stream = Stream {
            random,
            pid: 1_000 + 10 * u64::from(number - first),
            time,
            open: vec![0; threads],
            handles: Vec::new(),
            iteration: 0,
            events: &mut events,
        };
        (0..steps).for_each(|_| stream.step());
        stream.finish();
        time = (stream.time.0 + 1, 0);
    }
    events
}

fn text(events: &[Event], is_rounded: bool) -> String {
    let mut text = String::from("# tracer: nop\n");
    for Event { time: (seconds, ns), tid, mark } in events {
        let (pid, ns) = (tid / 10 * 10, if is_rounded { 0 } else { *ns });
        let _ =
            writeln!(text, "  t-{tid} ({pid:7}) [000] .... {seconds}.{ns:09}: tracing_mark_write: {mark}");
    }
    text
}

fn run(args: &[&str], file: &Path) -> Result<Vec<u8>> {
    let mut profiler = Profiler::new()?.args(args).args([file]);
    Ok(Child::run(profiler.command())?.expect_code(0)?.stdout)
}

fn json(args: &[&str], file: &Path) -> Result<Value> {
    serde_json::from_slice(&run(args, file)?).with_context(|| format!("{args:?}"))
}

/// Values by the thread that they have, each in its order.
fn by_thread(values: impl Iterator<Item = Value>) -> Value {
    let mut threads: Map<String, Value> = Map::new();
    for value in values {
        let thread = threads.entry(value["tid"].to_string()).or_insert_with(|| Value::Array(Vec::new()));
        thread.as_array_mut().expect("a list").push(value);
    }
    Value::Object(threads)
}

/// Sections of a thread as a list has them.
fn sections(file: &Path) -> Result<Value> {
    let lines = String::from_utf8(run(&["print", "--json-lines"], file)?)?;
    let sections: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(by_thread(sections.into_iter()))
}

fn exported(file: &Path, name: &str) -> Result<Vec<u8>> {
    let path = file.with_file_name(name);
    run(&["export", "--force", "-o", path.to_str().context("a path")?], file)?;
    Ok(fs::read(path)?)
}

/// Slices of Chrome's format: what was open when each began, but for setups, and its attributes.
fn chrome(file: &Path) -> Result<Value> {
    let trace: Value = serde_json::from_slice(&exported(file, "run.trace.json")?)?;
    let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut slices = Vec::new();
    for event in trace["traceEvents"].as_array().context("a list")? {
        let open = open.entry(event["tid"].to_string()).or_default();
        match event["ph"].as_str() {
            Some("E") => _ = open.pop(),
            Some("B") => {
                let name = event["name"].as_str().unwrap_or_default();
                open.push(name.to_owned());
                if name != "setup" {
                    let around: Vec<&String> = open.iter().filter(|name| *name != "setup").collect();
                    let args = event["args"].as_object().into_iter().flatten();
                    let args: Map<String, Value> = args
                        .filter(|(key, _)| !key.ends_with("_ns") && *key != "flow_anchor")
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    slices.push(serde_json::json!({ "tid": event["tid"], "open": around, "args": args }));
                }
            }
            _ => {}
        }
    }
    Ok(by_thread(slices.into_iter()))
}

/// Marks of a text, by thread, without their times.
fn systrace(file: &Path) -> Result<Value> {
    let text = String::from_utf8(exported(file, "run.systrace")?)?;
    let marks = text.lines().filter_map(|line| {
        let (place, mark) = line.split_once("tracing_mark_write: ")?;
        let tid = place.trim_start().split([' ', '-']).find_map(|word| word.parse::<u64>().ok())?;
        Some(serde_json::json!({ "tid": tid, "mark": mark }))
    });
    Ok(by_thread(marks))
}

/// Sections as Perfetto's format brings them back.
fn perfetto(file: &Path) -> Result<Value> {
    exported(file, "run.pftrace")?;
    sections(&file.with_file_name("run.pftrace"))
}

/// The parts of a result that do not depend on which of equal times is named first.
fn parts(value: &Value, keys: &[&str]) -> Value {
    let mut parts = Value::Object(keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect());
    settle(&mut parts);
    parts
}

/// Takes out what depends on the order of equal times, and rows of less than was rounded.
fn settle(value: &mut Value) {
    match value {
        Value::Object(all) => {
            all.retain(|key, _| !["slowest", "percentiles_ns", "histogram"].contains(&key.as_str()));
            all.values_mut().for_each(settle);
        }
        Value::Array(rows) => {
            rows.iter_mut().for_each(settle);
            rows.retain(|row| {
                row["work_ns"].as_f64().is_none_or(|work| work > ROUNDING) && row["count"] != 0
            });
            let keys = ["pid", "name", "layer", "phase"];
            rows.sort_by_cached_key(|row| keys.map(|key| row[key].to_string()));
        }
        _ => {}
    }
}

/// Checks that two values are the same, but for times.
fn expect_same(at: &str, one: &Value, other: &Value) -> Result<()> {
    match (one, other) {
        (Value::Object(all), Value::Object(others)) => {
            let one_only = all.keys().filter(|key| !others.contains_key(*key));
            let single: Vec<&String> =
                one_only.chain(others.keys().filter(|key| !all.contains_key(*key))).collect();
            ensure!(single.is_empty(), "{at}: {single:?} on one side only");
            all.iter().try_for_each(|(key, value)| expect_same(&format!("{at}/{key}"), value, &others[key]))
        }
        (Value::Array(all), Value::Array(others)) => {
            ensure!(all.len() == others.len(), "{at}: {one} and {other}");
            let mut pairs = all.iter().zip(others).enumerate();
            pairs.try_for_each(|(place, (one, other))| expect_same(&format!("{at}[{place}]"), one, other))
        }
        (Value::Number(number), Value::Number(another)) if at.contains("_ns") => {
            let difference = number.as_f64().zip(another.as_f64()).map(|(one, other)| (one - other).abs());
            ensure!(difference.is_some_and(|ns| ns <= ROUNDING), "{at}: {one} and {other}");
            Ok(())
        }
        _ => {
            ensure!(one == other, "{at}: {one} and {other}");
            Ok(())
        }
    }
}

#[test]
fn microseconds_give_the_results_of_nanoseconds() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("run.txt");
    let views: [(&str, View); 8] = [
        ("replay", |file| {
            Ok(parts(
                &json(&["replay", "--json"], file)?,
                &["functions", "accounts", "iterations", "missing"],
            ))
        }),
        ("path", |file| {
            let report = json(&["report", "--json", "--path", "capture>show"], file)?;
            Ok(parts(&report, &["begun", "completed", "latency", "steps"]))
        }),
        ("what-if", |file| {
            let answer = json(&["what-if", "--json", "--speed", "driver=2x"], file)?;
            Ok(parts(&answer, &["makespan_ns", "work", "edges"]))
        }),
        ("print", sections),
        ("chrome", chrome),
        ("systrace", systrace),
        ("perfetto", perfetto),
        ("why", |file| {
            Ok(parts(
                &json(&["why", "--json"], file)?,
                &["function", "executions", "slow", "typical", "difference_ns"],
            ))
        }),
    ];
    for first in (0..STREAMS).step_by(TOGETHER as usize) {
        let events = events(first);
        for (name, view) in views {
            let of = |is_rounded| {
                fs::write(&path, text(&events, is_rounded))?;
                view(&path)
            };
            let (exact, rounded) = (of(false)?, of(true)?);
            expect_same(name, &exact, &rounded).with_context(|| format!("streams from {first} on"))?;
        }
    }
    Ok(())
}
