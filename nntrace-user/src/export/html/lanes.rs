//! The swimlane of a page: sections in columns, one number for each in every column, and hand-overs.

use std::{collections::BTreeMap, hash::Hash};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{
    super::ThreadName,
    sections::{Held, Sections},
    thread_states::ThreadStates,
};
use crate::model::{Findings, causality::hand_overs::Moment, section_filter::Hidden};

/// Hand-overs at most.
const MOST_HAND_OVERS: usize = 20_000;
/// Sections that had not ended at most.
const MOST_OPEN: usize = 1_000;

/// Sections and hand-overs. Times are in ns; begins from that of the window of the run on.
#[derive(Serialize)]
pub(super) struct Swimlane<'a> {
    /// First and last instant that it shows; null for the whole run.
    range: Option<(u64, u64)>,
    /// All sections of the run.
    all: Count,
    /// Sections outside of the range.
    outside: Count,
    /// Duration below which sections are not shown, ns, and those that are not.
    least_ns: u64,
    short: Count,
    /// Sections in the range that were left out, as there were too many longer ones.
    hidden: Count,
    threads: Vec<Thread<'a>>,
    /// States of each of them; null where no context switch of it is known.
    thread_states: Vec<Option<ThreadStates>>,
    names: Vec<&'a str>,
    attributes: Vec<&'a str>,
    tags: Vec<String>,
    classes: Vec<&'static str>,
    columns: Columns,
    hand_overs: HandOvers,
    /// Sections that had not ended.
    open: Vec<Open>,
    /// How many of these there are.
    open_count: usize,
}

/// Sections, and the sum of their durations.
#[derive(Serialize)]
struct Count {
    count: u64,
    ns: u64,
}

/// Thread, and how many of the sections are its own: they follow those of the threads before it.
#[derive(Serialize)]
struct Thread<'a> {
    pid: u32,
    tid: u32,
    /// Name; empty where it is not known.
    name: &'a str,
    count: usize,
}

/// Columns, in which sections are by thread, and by begin in each.
#[derive(Default, Serialize)]
struct Columns {
    /// Begins, each less the one before it in its thread.
    begin: Vec<i64>,
    duration: Vec<u64>,
    /// Durations without the marked sections in them.
    exclusive: Vec<u64>,
    depth: Vec<u8>,
    /// Number of the name, and so on.
    name: Vec<usize>,
    tag: Vec<usize>,
    /// One more than the number of the attributes; 0 where there are none.
    attributes: Vec<usize>,
    /// One more than the number of the class; 0 for the usual one.
    class: Vec<usize>,
}

/// Hand-overs in columns, in the order in which they were taken.
#[derive(Default, Serialize)]
struct HandOvers {
    /// Numbers of the threads that sent.
    from: Vec<usize>,
    sent: Vec<i64>,
    /// Numbers of the threads that took.
    to: Vec<usize>,
    received: Vec<i64>,
    /// Hand-overs that are not among these.
    left_out: u64,
}

/// Section that had not ended.
#[derive(Serialize)]
struct Open {
    tid: u32,
    begin: i64,
    name: String,
}

/// Values by number, each once, in the order in which they came.
struct Numbered<T> {
    all: Vec<T>,
    numbers: FxHashMap<T, usize>,
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    fn new() -> Self {
        Self { all: Vec::new(), numbers: FxHashMap::default() }
    }

    fn number(&mut self, value: T) -> usize {
        *self.numbers.entry(value).or_insert_with(|| {
            self.all.push(value);
            self.all.len() - 1
        })
    }
}

/// Rows of asynchronous executions below those of a thread's stack: in none of them do two overlap.
#[derive(Default)]
struct RowsBelow {
    thread: (u32, u32),
    /// Ends of the last one in each row, ns.
    ends: Vec<u64>,
}

impl RowsBelow {
    /// First row: no stack is as deep.
    const FIRST: u8 = 128;

    /// Returns the row of the next one of a thread, in the order of their begins; the last row takes what finds no other.
    fn place(&mut self, thread: (u32, u32), held: &Held) -> u8 {
        if self.thread != thread {
            *self = Self { thread, ends: Vec::new() };
        }
        let most = usize::from(u8::MAX - Self::FIRST);
        let free = self.ends.iter().position(|end| *end <= held.begin_ns);
        let row = free.unwrap_or(self.ends.len().min(most));
        if row == self.ends.len() {
            self.ends.push(0);
        }
        self.ends[row] = held.end_ns();
        Self::FIRST + row as u8
    }
}

impl<'a> Swimlane<'a> {
    /// Creates the swimlane of these sections, and of the hand-overs among them.
    pub(super) fn new(findings: &'a Findings<'_>, sections: &'a Sections, names: &'a [ThreadName]) -> Self {
        let origin = findings.run.window.begin_ns;
        let held = sections.by_thread();
        let threads = threads(findings, sections, &held, names);
        let ids: Vec<(u32, u32)> = threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
        let mut texts = Numbered::new();
        let mut attributes = Numbered::new();
        let mut tags = Numbered::new();
        let mut classes = Numbered::new();
        let mut columns = Columns::default();
        let mut last = None;
        let mut rows = RowsBelow::default();
        for held in &held {
            let thread = (held.pid, held.tid);
            let before = last.replace((thread, held.begin_ns)).filter(|(other, _)| *other == thread);
            columns.begin.push(since(held.begin_ns, before.map_or(origin, |(_, begin)| begin)));
            columns.duration.push(held.duration_ns);
            columns.exclusive.push(held.exclusive_ns);
            columns.depth.push(if held.is_asynchronous() { rows.place(thread, held) } else { held.depth });
            columns.name.push(texts.number(&*held.name));
            columns.tag.push(tags.number(held.tag));
            let has_any = !held.attributes.is_empty();
            columns.attributes.push(if has_any { attributes.number(&*held.attributes) + 1 } else { 0 });
            columns.class.push(held.class.map_or(0, |class| classes.number(class) + 1));
        }
        let open = &findings.marks.open;
        Self {
            range: sections.shown.range,
            all: sections.all.into(),
            outside: sections.outside.into(),
            least_ns: sections.shown.least_ns,
            short: sections.short.into(),
            hidden: sections.hidden.into(),
            hand_overs: hand_overs(findings, sections, &threads),
            thread_states: ThreadStates::of(findings, sections.shown, &held, &ids),
            threads,
            names: texts.all,
            attributes: attributes.all,
            tags: tags
                .all
                .iter()
                .map(|tag| format!("{}_{}", tag.layer().code(), tag.phase().code()))
                .collect(),
            classes: classes.all,
            columns,
            open: open
                .iter()
                .take(MOST_OPEN)
                .map(|open| Open {
                    tid: open.tid,
                    begin: since(open.begin.time, origin),
                    name: findings.marks.names.text(open.name),
                })
                .collect(),
            open_count: open.len(),
        }
    }
}

impl From<Hidden> for Count {
    fn from(Hidden { sections, ns }: Hidden) -> Self {
        Self { count: sections, ns: ns.try_into().unwrap_or(u64::MAX) }
    }
}

/// Returns the threads that have sections or hand-overs, in the order of their ids.
fn threads<'a>(
    findings: &'a Findings<'_>,
    sections: &Sections,
    held: &[&Held],
    names: &'a [ThreadName],
) -> Vec<Thread<'a>> {
    let of_run = findings.run.threads.iter().map(|thread| ((thread.pid, thread.tid), &*thread.comm));
    let known = names.iter().map(|thread| ((thread.pid, thread.tid), &*thread.name));
    let names: BTreeMap<(u32, u32), &str> = of_run.chain(known).collect();
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for held in held {
        *counts.entry((held.pid, held.tid)).or_default() += 1;
    }
    for (sent, received) in taken(findings, sections).take(MOST_HAND_OVERS) {
        for moment in [sent, received] {
            counts.entry((moment.pid, moment.tid)).or_default();
        }
    }
    let thread = |((pid, tid), count)| {
        let name = names.get(&(pid, tid)).copied().unwrap_or_default();
        Thread { pid, tid, name, count }
    };
    counts.into_iter().map(thread).collect()
}

/// Returns where and when work was handed over and taken, as far as that is in the range.
fn taken(findings: &Findings<'_>, sections: &Sections) -> impl Iterator<Item = (Moment, Moment)> {
    let range = sections.shown.range;
    let all = findings.marks.causality.hand_overs.as_ref().map(|hand_overs| hand_overs.results().list);
    let both = all.into_iter().flatten().filter_map(|hand_over| hand_over.dispatch.zip(hand_over.receive));
    both.filter(move |(sent, received)| {
        range.is_none_or(|(first, last)| first <= received.time && sent.time <= last)
    })
}

fn hand_overs(findings: &Findings<'_>, sections: &Sections, threads: &[Thread<'_>]) -> HandOvers {
    let origin = findings.run.window.begin_ns;
    let places = (0..).zip(threads).map(|(place, thread)| ((thread.pid, thread.tid), place));
    let places: BTreeMap<(u32, u32), usize> = places.collect();
    let place = |moment: Moment| places.get(&(moment.pid, moment.tid)).copied();
    let left_out = findings.marks.causality.hand_overs.as_ref().map_or(0, |hand_overs| hand_overs.left_out());
    let mut columns = HandOvers { left_out, ..HandOvers::default() };
    for (sent, received) in taken(findings, sections) {
        if let (true, Some(from), Some(to)) =
            (columns.from.len() < MOST_HAND_OVERS, place(sent), place(received))
        {
            columns.from.push(from);
            columns.sent.push(since(sent.time, origin));
            columns.to.push(to);
            columns.received.push(since(received.time, origin));
        } else {
            columns.left_out += 1;
        }
    }
    columns
}

/// Returns a time less another one, ns.
fn since(time: u64, origin: u64) -> i64 {
    time.wrapping_sub(origin).cast_signed()
}
