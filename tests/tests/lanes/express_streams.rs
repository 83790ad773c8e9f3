//! The same random streams of marks by probes, by the express lane and by replay: equal counts and structure, and equal
//! times, to the ns, when the stamps of either lane are replayed.
//!
//! `NNTRACE_CASES` changes the number of cases, `NNTRACE_FIRST` the first of them, `NNTRACE_SEED` the streams.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    ops::{Add, Sub},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_common::stack::MAX_DEPTH;
use nntrace_tests::{
    express::AMPLE,
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
    trace,
};
use nntrace_user::{
    model::limits::Limits,
    replay::Options,
    report::snapshot::{Snapshot, StackFrame},
};

/// Cases of one run of the program.
const BATCH: u64 = 250;
/// Memory of the profiler's and of replay's tables: room for every section of a batch as a function of its own.
const MEMORY: (&str, u64) = ("1G", 1 << 30);
/// Memory of the kernel programs' tables, with room for their names and paths.
const MAP_MEMORY: &str = "128M";
/// Limit of one run: waits for lanes on a loaded host included.
const LIMIT: Duration = Duration::from_mins(3);

/// Figures by what they are of, with processes by their roles.
type Figures = BTreeMap<String, String>;

/// Ways of a mark to the profiler: options of `--marks`, and what the program waits for.
const LANES: [(&str, &str); 2] = [("uprobe", "probes"), ("express", "lanes")];

/// Cases of one process.
#[derive(Clone, Copy, Debug)]
struct Batch {
    seed: u64,
    first: u64,
    cases: u64,
    /// Whether each section has a name of its own.
    has_own_names: bool,
}

/// Time between two readings of a clock, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    least: i64,
    most: i64,
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { least: self.least + other.least, most: self.most + other.most }
    }
}

impl Sub for Span {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { least: self.least - other.most, most: self.most - other.least }
    }
}

/// Line of the program's log.
#[derive(Clone, Debug)]
struct Mark {
    role: String,
    pid: u32,
    tid: u32,
    /// Clock before and after the mark, ns; its stamp where it is in a ring.
    at: Span,
    payload: String,
}

impl FromStr for Mark {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.splitn(6, ' ').collect();
        let [role, pid, tid, before, behind, payload] = words[..] else { anyhow::bail!("no mark: {line:?}") };
        let at = Span { least: before.parse()?, most: behind.parse()? };
        ensure!(at.least <= at.most, "times in the wrong order: {line:?}");
        Ok(Self {
            role: role.to_owned(),
            pid: pid.parse()?,
            tid: tid.parse()?,
            at,
            payload: payload.to_owned(),
        })
    }
}

/// Run of a batch by one lane.
struct Recorded {
    marks: Vec<Mark>,
    live: Snapshot,
}

impl Recorded {
    fn run(program: &Program, batch: Batch, (marks, waits_for): (&str, &str)) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("log");
        let Batch { seed, first, cases, has_own_names } = batch;
        let mut command: Vec<OsString> = vec![program.path().into(), (&file).into()];
        command.extend([seed, first, cases].map(|number| number.to_string().into()));
        command.extend([if has_own_names { "own" } else { "few" }, waits_for].map(OsString::from));
        let options = ["--marks", marks, "--memory", MEMORY.0, "--map-memory", MAP_MEMORY];
        let profiler = Profiler::new()?.limit(LIMIT).args(options).args(AMPLE);
        let Run { snapshot: live, ended } = profiler.launch(command)?;
        ended.expect_code(0)?;
        let lost = live.source.express.as_ref().map_or(0, |used| used.lost + used.damaged);
        ensure!(lost + live.loss.records_dropped == 0, "{:?}, {:?}", live.source.express, live.loss);
        let marks = fs::read_to_string(&file)?.lines().map(str::parse).collect::<Result<Vec<Mark>>>()?;
        ensure!(live.overhead.marks == marks.len() as u64, "{} of {}", live.overhead.marks, marks.len());
        Ok(Self { marks, live })
    }

    /// Replays the marks at these times (ns).
    fn replay(&self, times: impl IntoIterator<Item = u64>) -> Result<Snapshot> {
        let mut lines: Vec<(u64, &Mark)> = times.into_iter().zip(&self.marks).collect();
        // Stable: of one thread the marks of one instant stay in their order.
        lines.sort_by_key(|(at, _)| *at);
        let lines = lines.into_iter().map(|(at, mark)| trace::line(at, mark.tid, mark.pid, &mark.payload));
        let options = Options { limits: Limits::of_memory(MEMORY.1), ..Options::default() };
        trace::replay_with(lines.collect::<Vec<_>>().join("\n"), &options)
    }

    /// Returns the role of each process.
    fn roles(&self) -> BTreeMap<u32, &str> {
        self.marks.iter().map(|mark| (mark.pid, mark.role.as_str())).collect()
    }

    /// Returns counts and structure of a snapshot of this run.
    fn counts(&self, snapshot: &Snapshot) -> Figures {
        let roles = self.roles();
        let role = |pid: &u32| roles.get(pid).copied().unwrap_or("no process of ours");
        let mut all = Figures::new();
        let mut add = |what: &str, of: String, figure: String| {
            all.insert(format!("{what}: {of}"), figure);
        };
        for row in &snapshot.phases {
            add(
                "phase",
                format!("{} {:?} {:?}", role(&row.pid), row.layer, row.phase),
                row.count.to_string(),
            );
        }
        for row in &snapshot.stacks {
            add("stack", format!("{} {}", role(&row.pid), path(&row.path)), row.count.to_string());
        }
        for row in &snapshot.functions {
            let of = format!("{} {:?} {:?} {}", role(&row.pid), row.layer, row.phase, row.name);
            add("function", of, format!("{} {}", row.count, row.is_partial));
        }
        // Not by what they are parts of: a trace of marks does not tell who created a thread.
        let mut iterations: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
        for row in &snapshot.iterations {
            let [ended, open] = iterations.entry((role(&row.pid), &row.name)).or_default();
            *ended += row.count;
            *open += row.open;
        }
        for (of, counts) in iterations {
            add("iteration", format!("{of:?}"), format!("{counts:?}"));
        }
        for row in &snapshot.counters {
            let values = format!("{} {:?} {:?} {:?}", row.count, row.min, row.max, row.last);
            add("counter", format!("{} {}", role(&row.pid), row.name), values);
        }
        for row in &snapshot.tracks {
            let counts = format!("{} instants, {} slices, {} open", row.instants, row.slices, row.open);
            add("track", format!("{} {} {}", role(&row.pid), row.track, row.name), counts);
        }
        for (kind, count) in snapshot.odd_marks() {
            add("diagnostic", kind.to_owned(), count.to_string());
        }
        add("hand-overs", String::new(), format!("{:?}", snapshot.hand_overs));
        all
    }

    /// Returns the times (ns) of a snapshot of this run.
    fn times(&self, snapshot: &Snapshot) -> Figures {
        let roles = self.roles();
        let role = |pid: &u32| roles.get(pid).copied().unwrap_or("no process of ours");
        let phases = snapshot.phases.iter().map(|row| {
            let quantiles = [row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.max_ns];
            let times = format!("{} {} {quantiles:?} {:?}", row.total_ns, row.exclusive_ns, row.histogram);
            (format!("phase: {} {:?} {:?}", role(&row.pid), row.layer, row.phase), times)
        });
        let stacks = snapshot.stacks.iter().map(|row| {
            let times = format!("{} {}", row.total_ns, row.exclusive_ns);
            (format!("stack: {} {}", role(&row.pid), path(&row.path)), times)
        });
        let functions = snapshot.functions.iter().map(|row| {
            let times = [row.total_ns, row.exclusive_ns, row.p50_ns, row.p99_ns, row.max_ns];
            let of = format!("{} {:?} {:?} {}", role(&row.pid), row.layer, row.phase, row.name);
            (format!("function: {of}"), format!("{times:?}"))
        });
        phases.chain(stacks).chain(functions).collect()
    }

    /// Checks the exclusive time of each name, where the program's clock tells it; returns how many times it tells to the ns.
    fn check_clock(&self) -> Result<usize> {
        let expected = exclusive_times(&self.marks);
        let mut found: BTreeMap<(u32, &str), i64> = BTreeMap::new();
        for row in &self.live.functions {
            *found.entry((row.pid, &row.name)).or_default() += i64::try_from(row.exclusive_ns)?;
        }
        ensure!(found.keys().eq(expected.keys()), "other names than expected");
        for (key, ns) in &found {
            let Span { least, most } = expected[key];
            ensure!((least..=most).contains(ns), "{key:?}: {ns} ns, not {least} to {most} ns");
        }
        Ok(expected.values().filter(|span| span.least == span.most).count())
    }

    /// Returns times (ns) of the marks by which each section has the exclusive time that was measured live. Needs own names.
    fn stamps(&self) -> Result<Vec<u64>> {
        let mut exclusive: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        for row in &self.live.functions {
            let known = exclusive.insert((row.pid, &row.name), row.exclusive_ns);
            ensure!(known.is_none() && row.count == 1, "not the only one of its name: {row:?}");
        }
        // Each thread's time goes on by the exclusive time of what ends.
        let mut threads: BTreeMap<u32, (u64, PlainStack)> = BTreeMap::new();
        let times = self.marks.iter().map(|mark| {
            let (time, stack) =
                threads.entry(mark.tid).or_insert_with(|| (1_000_000_000, PlainStack::default()));
            if let Some(closed) = stack.mark(mark) {
                *time += exclusive.get(&(mark.pid, closed.name)).copied().unwrap_or(0);
            }
            *time
        });
        Ok(times.collect())
    }
}

fn path(frames: &[StackFrame]) -> String {
    frames.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Open section; without a name it is transparent.
#[derive(Clone, Copy, Debug)]
struct Open<'a> {
    name: Option<&'a str>,
    begin: Span,
    /// Time of the sections with names in it.
    nested: Span,
}

/// Section that has ended.
struct Closed<'a> {
    name: &'a str,
    exclusive: Span,
}

/// Stack of one thread, by the first rules of the contract only.
#[derive(Default)]
struct PlainStack<'a> {
    open: Vec<Open<'a>>,
    beyond: usize,
}

impl<'a> PlainStack<'a> {
    /// Takes a mark; returns the section that it ends, if that has a name.
    fn mark(&mut self, mark: &'a Mark) -> Option<Closed<'a>> {
        let Some(text) = mark.payload.strip_prefix("B|0|") else {
            if !mark.payload.starts_with('E') {
                return None;
            }
            if self.beyond > 0 {
                self.beyond -= 1;
                return None;
            }
            return self.pop(mark.at);
        };
        let is_switch = text.starts_with("[SW]");
        let closed = if is_switch && self.beyond == 0 { self.pop(mark.at) } else { None };
        if is_switch && self.open.len() < MAX_DEPTH {
            self.push(None, mark.at);
        }
        if self.open.len() < MAX_DEPTH {
            self.push(name(text), mark.at);
        } else {
            self.beyond += 1;
        }
        closed
    }

    fn push(&mut self, name: Option<&'a str>, begin: Span) {
        self.open.push(Open { name, begin, nested: Span::default() });
    }

    fn pop(&mut self, end: Span) -> Option<Closed<'a>> {
        let Open { name, begin, nested } = self.open.pop()?;
        let duration = end - begin;
        if let Some(parent) = self.open.last_mut() {
            parent.nested = parent.nested + if name.is_some() { duration } else { nested };
        }
        name.map(|name| Closed { name, exclusive: duration - nested })
    }
}

/// Returns the name in the text of a begin; `None` of a foreign section.
fn name(text: &str) -> Option<&str> {
    if text.starts_with("HIDL") {
        return Some(text);
    }
    let text = text.strip_prefix("[SW]").or_else(|| text.strip_prefix("[SUB]")).unwrap_or(text);
    let (tag, detail) = text.strip_prefix("[NN_")?.split_once(']')?;
    let is_known = !tag.starts_with("LQ");
    is_known.then(|| detail.split('#').next().unwrap_or_default())
}

/// Returns the exclusive times of the sections of each process and name, by the clock of the program. Those of interface calls
/// count on threads that have tags.
fn exclusive_times(marks: &[Mark]) -> BTreeMap<(u32, &str), Span> {
    let has_tag = |mark: &&Mark| mark.payload.contains("[NN_");
    let taking_part: BTreeSet<u32> = marks.iter().filter(has_tag).map(|mark| mark.tid).collect();
    let mut threads: BTreeMap<u32, PlainStack<'_>> = BTreeMap::new();
    let mut sums: BTreeMap<(u32, &str), Span> = BTreeMap::new();
    for mark in marks.iter().filter(|mark| taking_part.contains(&mark.tid)) {
        if let Some(Closed { name, exclusive }) = threads.entry(mark.tid).or_default().mark(mark) {
            let sum = sums.entry((mark.pid, name)).or_default();
            *sum = *sum + exclusive;
        }
    }
    sums
}

/// Checks that figures are equal.
fn compare(found: &Figures, expected: &Figures, what: &str) -> Result<()> {
    let places: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<String> = places
        .into_iter()
        .filter(|place| found.get(*place) != expected.get(*place))
        .map(|place| format!("{place}: {:?} and {:?}", found.get(place), expected.get(place)))
        .collect();
    let shown = differing.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    ensure!(differing.is_empty(), "{} figures differ {what}:\n{shown}", differing.len());
    Ok(())
}

/// Content of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    marks: usize,
    by_lane: u64,
    /// Names whose time the program's clock told to the ns.
    exact: usize,
    /// Threads with lanes.
    threads: u64,
    processes: usize,
}

fn check(program: &Program, batch: Batch, tally: &mut Tally) -> Result<()> {
    let mut by_lane = Vec::new();
    for lane in LANES {
        let what = |what: &str| format!("by {} and {what}", lane.0);
        let recorded = Recorded::run(program, batch, lane).with_context(|| lane.0)?;
        let replayed = recorded.replay(recorded.marks.iter().map(|mark| mark.at.least.unsigned_abs()))?;
        let counts = recorded.counts(&recorded.live);
        compare(&counts, &recorded.counts(&replayed), &what("by replay"))?;
        let exact = recorded.check_clock().with_context(|| what("by the program's clock"))?;
        if batch.has_own_names {
            let replayed = recorded.replay(recorded.stamps()?)?;
            let times = [&recorded.live, &replayed].map(|snapshot| recorded.times(snapshot));
            compare(&times[0], &times[1], &what("by replay of its stamps"))?;
        }
        if let Some(used) = recorded.live.source.express {
            tally.by_lane += used.marks;
            tally.threads += used.threads;
            tally.exact += exact;
            tally.marks += recorded.marks.len();
            tally.processes += recorded.roles().len();
        }
        by_lane.push(counts);
    }
    compare(&by_lane[0], &by_lane[1], "by probes and by the express lane")
}

fn number(variable: &str, unless_told: u64) -> u64 {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(unless_told)
}

#[test]
fn random_streams_are_accounted_alike_by_probe_by_lane_and_by_replay() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("express-streams.c")?;
    let (seed, cases) = (number("NNTRACE_SEED", 1), number("NNTRACE_CASES", 4 * BATCH));
    let begin = number("NNTRACE_FIRST", 0);
    let end = begin + cases;
    let mut tally = Tally::default();
    for first in (begin..end).step_by(BATCH as usize) {
        let has_own_names = (first / BATCH).is_multiple_of(2);
        let batch = Batch { seed, first, cases: BATCH.min(end - first), has_own_names };
        check(&program, batch, &mut tally).with_context(|| format!("{batch:?}"))?;
    }
    println!("{tally:?}");
    // Otherwise the lane was not tested. The faster the machine, the more is written before a lane is accepted.
    assert!(tally.by_lane > tally.marks as u64 / 10 && tally.exact > tally.marks / 100, "{tally:?}");
    Ok(())
}
