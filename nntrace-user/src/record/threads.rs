//! Threads of a recording that have marks, with their names by ancestry.

use nntrace_common::{
    record::{ProcessRecord, Record, SpanRecord},
    stack::Class,
};
use rustc_hash::FxHashMap;

use super::{
    ancestry::{self, Ancestry},
    decode::Event,
    format::Stream,
};
use crate::model::{input::Input, section::Mark};

/// Threads that have names at most; more are shown without.
const MOST: usize = 1 << 18;
/// Forks that are remembered at most.
const MOST_FORKS: usize = 1 << 22;
/// Name of threads that have none.
const NAMELESS: &str = "?";

/// Thread with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name by its ancestry.
    pub name: String,
    /// When it began, ns; 0 if it was there before. Ids come again.
    pub since_ns: u64,
}

/// Threads in the order of their ancestry.
#[derive(Debug, Default)]
pub struct Threads {
    threads: Vec<NamedThread>,
    /// Places of threads by process and thread, with the times from which they had these ids.
    places: FxHashMap<(u32, u32), Vec<(u64, u32)>>,
}

impl Threads {
    /// Returns the threads.
    #[must_use]
    pub fn all(&self) -> &[NamedThread] {
        &self.threads
    }

    /// Returns the place of the thread that had these ids at a time, ns.
    #[must_use]
    #[inline]
    pub fn place(&self, pid: u32, tid: u32, time: u64) -> Option<u32> {
        let places = self.places.get(&(pid, tid))?;
        let place = places.iter().rfind(|(since, _)| *since <= time).or_else(|| places.first());
        place.map(|(_, place)| *place)
    }

    /// Whether threads with these ids have a place.
    pub(super) fn has(&self, pid: u32, tid: u32) -> bool {
        self.places.contains_key(&(pid, tid))
    }

    /// Returns the name of the thread at a place.
    #[must_use]
    #[inline]
    pub fn name(&self, place: Option<u32>) -> &str {
        place.and_then(|place| self.threads.get(place as usize)).map_or(NAMELESS, |thread| &thread.name)
    }
}

/// Use of a stream by a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamUse {
    /// Stream.
    pub(super) stream: Stream,
    /// Number of its first event there.
    pub(super) first: u64,
    /// Number of its last event there.
    pub(super) last: u64,
}

/// Use of a block by a thread: sections of one site.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadUse {
    pid: u32,
    tid: u32,
    takes_part: bool,
    used: StreamUse,
    count: u64,
    /// Earliest begin, ns; of asynchronous executions, end.
    begin: u64,
    is_asynchronous: bool,
}

impl ThreadUse {
    /// Creates the use by one section.
    pub(super) fn new(stream: Stream, number: u64, span: &SpanRecord) -> Self {
        Self {
            pid: span.tgid,
            tid: span.tid,
            takes_part: !span.is_provisional(),
            used: StreamUse { stream, first: number, last: number },
            count: 1,
            begin: span.seen_at(),
            is_asynchronous: span.class == Class::Asynchronous as u8,
        }
    }

    /// Adds a later section of the site, from `begin` to `end` (ns).
    #[inline]
    pub(super) fn add(&mut self, number: u64, begin: u64, end: u64) {
        self.used.last = number;
        self.count += 1;
        let seen_at = if self.is_asynchronous { end } else { begin };
        self.begin = seen_at.min(self.begin);
    }
}

/// Sections and other marks of a thread, as a pass has seen them.
#[derive(Debug, Default)]
pub(super) struct ThreadSections {
    /// Number of both.
    pub(super) count: u64,
    /// Whether it takes part in the accounting: only then do its provisional sections count.
    pub(super) takes_part: bool,
    /// Streams with its events.
    pub(super) streams: Vec<StreamUse>,
    /// Earliest begin, ns.
    begin: u64,
}

/// Threads while a pass goes over the events.
#[derive(Debug, Default)]
pub(super) struct ThreadsSeen {
    seen: FxHashMap<(u32, u32), ThreadSections>,
    forks: Vec<ProcessRecord>,
}

impl ThreadsSeen {
    /// Takes sections of one thread.
    pub(super) fn sections(&mut self, used: &ThreadUse) {
        let thread = self.thread(used.pid, used.tid);
        thread.begin = if thread.count == 0 { used.begin } else { thread.begin.min(used.begin) };
        thread.count += used.count;
        thread.takes_part |= used.takes_part;
        thread.uses(used.used);
    }

    /// Takes another event.
    pub(super) fn other(&mut self, stream: Stream, number: u64, event: &Event) {
        match *event {
            Event::Record(Record::Fork(fork)) if self.forks.len() < MOST_FORKS => self.forks.push(fork),
            Event::Record(Record::TakesPart(ProcessRecord { tgid, tid, .. }))
            | Event::ThreadMarked { tgid, tid } => self.thread(tgid, tid).takes_part = true,
            Event::AnnotatedBegin { origin, .. } => {
                let once = StreamUse { stream, first: number, last: number };
                self.thread(origin.pid, origin.tid).uses(once);
            }
            _ => {}
        }
    }

    /// Takes a mark that is no section.
    pub(super) fn mark(&mut self, stream: Stream, number: u64, mark: &Mark<'_>) {
        let used = StreamUse { stream, first: number, last: number };
        let Mark { pid, tid, time: begin, .. } = *mark;
        self.sections(&ThreadUse {
            pid,
            tid,
            takes_part: false,
            used,
            count: 1,
            begin,
            is_asynchronous: false,
        });
    }

    #[inline]
    fn thread(&mut self, pid: u32, tid: u32) -> &mut ThreadSections {
        self.seen.entry((pid, tid)).or_default()
    }

    /// Names the threads that have marks.
    pub(super) fn named(mut self) -> (Threads, FxHashMap<(u32, u32), ThreadSections>) {
        self.seen.retain(|_, thread| thread.count > 0);
        let mut seen: Vec<(u64, u32, u32)> =
            self.seen.iter().map(|(&(pid, tid), thread)| (thread.begin, pid, tid)).collect();
        seen.sort_unstable();
        seen.truncate(MOST);
        let mut pids: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (_, pid, tid) in &seen {
            pids.entry(*tid).or_default().push(*pid);
        }
        let mut ancestry = Ancestry::default();
        let mut threads: Vec<NamedThread> = Vec::new();
        self.forks.sort_by_key(|fork| fork.time);
        for fork in &self.forks {
            ancestry.take(&Input::Record(&Record::Fork(*fork)));
            ancestry.take(&Input::Advance { until: fork.time });
            if threads.len() >= MOST {
                break;
            }
            for &pid in pids.get(&fork.tid).into_iter().flatten() {
                let name = ancestry.name(pid, fork.tid).to_owned();
                threads.push(NamedThread { pid, tid: fork.tid, name, since_ns: fork.time });
            }
        }
        let mut forked: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for thread in &threads {
            forked.entry((thread.pid, thread.tid)).or_insert(thread.since_ns);
        }
        // Those that were there before all forks, in the order in which they are first seen.
        for &(begin, pid, tid) in &seen {
            if forked.get(&(pid, tid)).is_none_or(|since| begin < *since) {
                let name = if forked.contains_key(&(pid, tid)) {
                    format!("{}_?{tid}", ancestry.name(pid, pid))
                } else {
                    ancestry.name(pid, tid).to_owned()
                };
                threads.push(NamedThread { pid, tid, name, since_ns: 0 });
            }
        }
        threads.sort_by(|a, b| {
            ancestry::order(&a.name, &b.name)
                .then((a.pid, a.tid, a.since_ns).cmp(&(b.pid, b.tid, b.since_ns)))
        });
        let mut places: FxHashMap<(u32, u32), Vec<(u64, u32)>> = FxHashMap::default();
        for (thread, place) in threads.iter().zip(0..) {
            places.entry((thread.pid, thread.tid)).or_default().push((thread.since_ns, place));
        }
        for places in places.values_mut() {
            places.sort_unstable();
        }
        (Threads { threads, places }, self.seen)
    }
}

impl ThreadSections {
    fn uses(&mut self, used: StreamUse) {
        match self.streams.last_mut() {
            Some(last) if last.stream == used.stream => {
                last.first = used.first.min(last.first);
                last.last = used.last.max(last.last);
            }
            _ => self.streams.push(used),
        }
    }
}
