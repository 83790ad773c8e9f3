//! Inputs of a recorded model, by thread: what a player needs of them.

use std::collections::BTreeMap;

use memchr::memmem;
use nntrace_common::{
    mark::{self, Label},
    record::{ProcessRecord, Record, SpanRecord},
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::texts::{TextId, Texts};
use crate::model::input::Input;

/// Marks that are kept in memory at most: 90 bytes each, at the worst.
pub(super) const MOST_MARKS: u64 = 5_000_000;

/// Collected inputs.
#[derive(Debug, Default)]
pub(super) struct Collection {
    /// Events by process and thread id. An id may be that of several threads, one after the other.
    pub(super) threads: BTreeMap<(u32, u32), ThreadEvents>,
    /// Forks in which a thread was created, or a process.
    pub(super) forks: Vec<ProcessRecord>,
    /// Begins whose text is known.
    pub(super) annotations: Annotations,
    /// Layers and phases of begins, by thread and time, as far as they are recorded by themselves.
    pub(super) labels: FxHashMap<(u32, u64), Label>,
    /// Texts.
    pub(super) texts: Texts,
    marks: u64,
}

/// Begins whose text is known, by thread, timestamp, and number of sections around them.
#[derive(Debug, Default)]
pub(super) struct Annotations(FxHashMap<(u32, Stamp, u8), Annotation>);

impl Annotations {
    /// Returns what is known of the begin of a section that ended.
    pub(super) fn of(&self, span: &SpanRecord) -> Option<Annotation> {
        self.at(span.tid, span.begin_stamp(), span.depth)
    }

    /// Returns what is known of the begin of a thread's section at this depth.
    pub(super) fn at(&self, tid: u32, begin: Stamp, depth: u8) -> Option<Annotation> {
        self.0.get(&(tid, begin, depth)).copied()
    }
}

/// Known parts of the text of a begin, beside its tag and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    /// Attributes as written, each after a `#`.
    pub(super) attributes: TextId,
    /// Whether it closes the section that is open, and takes its place.
    pub(super) is_switch: bool,
}

/// Events of one thread id in a process.
#[derive(Debug, Default)]
pub(super) struct ThreadEvents {
    /// Sections that ended, in the order in which they did.
    pub(super) sections: Vec<SpanRecord>,
    /// Events without a duration.
    pub(super) points: Vec<Point>,
}

/// Event without a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// When it happened.
    pub(super) at: Stamp,
    /// Kind.
    pub(super) kind: PointKind,
}

/// Kind of an event without a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointKind {
    /// Counter, instant, or end of an asynchronous slice, with this text.
    Event(TextId),
    /// Begin of a section without a layer and a phase, whose name has this hash: a call that a driver makes.
    Call(u64),
}

impl ThreadEvents {
    /// Returns the time of the last one, ns.
    fn last(&self) -> u64 {
        let sections = self.sections.iter().map(|span| span.end);
        sections.chain(self.points.iter().map(|point| point.at.time)).max().unwrap_or_default()
    }
}

impl Collection {
    /// Returns the process that wrote last under each thread id: sections that are open in the end are its.
    pub(super) fn last_processes(&self) -> BTreeMap<u32, u32> {
        let mut last: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        for (&(pid, tid), events) in &self.threads {
            let known = last.entry(tid).or_default();
            *known = (*known).max((events.last(), pid));
        }
        last.into_iter().map(|(tid, (_, pid))| (tid, pid)).collect()
    }

    /// Takes an input; returns whether there is room for it.
    pub(super) fn take(&mut self, input: &Input<'_>) -> bool {
        match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => {
                self.marks += 2;
                self.thread(span.tgid, span.tid).sections.push(*span);
            }
            Input::Record(Record::Begin(begin)) => {
                if begin.label.is_tagged() {
                    self.labels.insert((begin.tid, begin.time), begin.label);
                } else {
                    self.marks += 2;
                    let point = Point { at: begin.stamp(), kind: PointKind::Call(begin.name) };
                    self.thread(begin.tgid, begin.tid).points.push(point);
                }
            }
            Input::Record(Record::Fork(fork)) => self.forks.push(*fork),
            Input::Track { origin, time, payload } => {
                if let Some(text) = self.texts.add_payload(payload) {
                    self.marks += 1;
                    let point = Point { at: origin.at(time), kind: PointKind::Event(text) };
                    self.thread(origin.pid, origin.tid).points.push(point);
                }
            }
            Input::AnnotatedBegin { origin, time, payload, name_at } => {
                let annotation = self.annotation(payload, name_at);
                self.annotations.0.insert((origin.tid, origin.at(time), origin.depth), annotation);
            }
            _ => {}
        }
        self.marks <= MOST_MARKS
    }

    fn annotation(&mut self, payload: &[u8], name_at: u16) -> Annotation {
        let at = usize::from(name_at);
        let attributes = payload.get(at + mark::name(payload, name_at).len()..).unwrap_or_default();
        // The tag has no such letters.
        let is_switch = memmem::find(payload.get(..at).unwrap_or_default(), b"[SW][").is_some();
        Annotation { attributes: self.texts.add(attributes.trim_ascii_end()), is_switch }
    }

    fn thread(&mut self, pid: u32, tid: u32) -> &mut ThreadEvents {
        self.threads.entry((pid, tid)).or_default()
    }
}
