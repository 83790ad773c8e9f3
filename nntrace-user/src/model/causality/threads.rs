//! What each thread works for, and which sections of it have ended inside one that has not.

use nntrace_common::record::SpanRecord;
use rustc_hash::FxHashMap;

use super::context::Context;

/// Ended sections that one open section may hold one by one; beyond, those are kept as one.
const MOST_CLOSED: usize = 1 << 12;

/// All threads, by id.
#[derive(Default)]
pub struct Threads {
    by_tid: FxHashMap<u32, Thread>,
    /// The sections directly in the one that ended last.
    inside: Vec<Inner>,
}

#[derive(Default)]
struct Thread {
    /// What the thread began with.
    base: Context,
    /// What has been said since and holds, in order of time.
    said: Vec<Entry>,
    /// Sections that ended, in order of time, whose outer section has not.
    closed: Vec<Inner>,
}

#[derive(Clone, Copy)]
enum Entry {
    /// A section that is open.
    Told(Told),
    /// Work that was taken over.
    Received { time: u64, context: Context },
}

impl Entry {
    fn time(&self) -> u64 {
        match self {
            Self::Told(told) => told.time,
            Self::Received { time, .. } => *time,
        }
    }

    fn context(&self) -> Context {
        match self {
            Self::Told(told) => told.context,
            Self::Received { context, .. } => *context,
        }
    }

    fn told(&self) -> Option<Told> {
        match self {
            Self::Told(told) => Some(*told),
            Self::Received { .. } => None,
        }
    }
}

/// A section that says what it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// When it began, ns.
    pub time: u64,
    /// Hash of its name.
    pub name: u64,
    /// What it belongs to.
    pub context: Context,
    /// Whether it is an iteration by itself.
    pub is_root: bool,
    /// Whether it runs work that was handed over.
    pub comes_by_hand: bool,
    /// Its number in the graph.
    pub node: Option<u32>,
}

/// A section that ended inside of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// When it began, ns.
    pub begin: u64,
    /// When it ended, ns.
    pub end: u64,
}

/// A section that ended.
pub(super) struct Closed<'a> {
    /// What it belongs to, as it began.
    pub context: Context,
    /// What it said.
    pub told: Option<Told>,
    /// Its exclusive time, ns, that belongs to what it belongs to.
    pub charged: u64,
    /// The rest of that, by the work that was taken over inside of it.
    pub taken_over: Vec<Piece>,
    /// The sections directly in it.
    inside: &'a [Inner],
    /// Whether what it belongs to came from another thread, and nothing of this one is around it.
    pub comes_from_elsewhere: bool,
    span: Inner,
}

/// Exclusive time that belongs to one context.
pub(super) struct Piece {
    /// What it belongs to.
    pub context: Context,
    /// Time, ns.
    pub exclusive: u64,
}

impl Threads {
    /// What a thread works for at present.
    pub(super) fn context(&self, tid: u32) -> Context {
        self.by_tid.get(&tid).map_or_else(Context::default, Thread::context)
    }

    /// A thread begins, and inherits.
    pub(super) fn create(&mut self, tid: u32, base: Context) {
        self.by_tid.insert(tid, Thread { base, ..Thread::default() });
    }

    /// A thread ends.
    pub(super) fn exit(&mut self, tid: u32) {
        self.by_tid.remove(&tid);
    }

    /// A section begins that says something.
    pub(super) fn begin(&mut self, tid: u32, told: Told) {
        self.by_tid.entry(tid).or_default().said.push(Entry::Told(told));
    }

    /// A thread takes over work, for as long as the section lasts that it is in.
    pub(super) fn receive(&mut self, tid: u32, time: u64, context: Context) {
        self.by_tid.entry(tid).or_default().said.push(Entry::Received { time, context });
    }

    /// A section ends.
    pub(super) fn close(&mut self, span: &SpanRecord) -> Closed<'_> {
        self.by_tid.entry(span.tid).or_default().close(span, &mut self.inside)
    }
}

impl Thread {
    fn context(&self) -> Context {
        self.said.last().map_or(self.base, Entry::context)
    }

    fn close<'a>(&mut self, span: &SpanRecord, inside: &'a mut Vec<Inner>) -> Closed<'a> {
        let is_this = |entry: &Entry| matches!(entry, Entry::Told(told) if told.time == span.begin && told.name == span.name);
        let place = self.said.iter().rposition(is_this);
        // What begins with the end of this one is no part of it.
        let after = self.said.iter().rposition(|entry| entry.time() < span.end).map_or(0, |at| at + 1);
        let own = place.unwrap_or_else(|| {
            self.said.iter().rposition(|entry| entry.time() <= span.begin).map_or(0, |at| at + 1)
        });
        let told = place.and_then(|at| self.said[at].told());
        let before = if own == 0 { self.base } else { self.said[own - 1].context() };
        let context = told.map_or_else(|| before.inside(), |told| told.context);
        self.take_inside(span, inside);
        let received = self.said[own.min(after)..after].iter().filter(|entry| entry.told().is_none());
        let taken_over = pieces(span, received.map(|entry| (entry.time(), entry.context())), inside);
        // Sections that are still in it are those whose end was lost.
        self.said.drain(own..after.max(place.map_or(own, |at| at + 1)));
        let comes_from_elsewhere = match told {
            Some(told) => told.comes_by_hand || own == 0,
            None => own == 0 && span.depth == 0,
        };
        let closed = Inner { begin: span.begin, end: span.end };
        if span.depth > 0 {
            self.closed.push(closed);
            self.limit();
        }
        Closed {
            context,
            told,
            charged: span.exclusive - taken_over.iter().map(|piece| piece.exclusive).sum::<u64>(),
            taken_over,
            inside,
            comes_from_elsewhere,
            span: closed,
        }
    }

    /// The sections directly in this one.
    fn take_inside(&mut self, span: &SpanRecord, inside: &mut Vec<Inner>) {
        let first = self.closed.iter().rposition(|inner| inner.begin < span.begin).map_or(0, |at| at + 1);
        inside.clear();
        inside.extend(self.closed.drain(first..));
        if span.depth == 0 {
            self.closed.clear();
        }
    }

    /// An outer section that is not ours may last for ever.
    fn limit(&mut self) {
        if self.closed.len() > MOST_CLOSED {
            let half = MOST_CLOSED / 2;
            self.closed[half - 1].begin = self.closed[0].begin;
            self.closed.drain(..half - 1);
        }
    }
}

/// Exclusive time by the work that was taken over, in order of time.
fn pieces(span: &SpanRecord, received: impl Iterator<Item = (u64, Context)>, inside: &[Inner]) -> Vec<Piece> {
    let mut received = received.peekable();
    let mut left = span.exclusive;
    let mut pieces = Vec::new();
    while let Some((begin, context)) = received.next() {
        let end = received.peek().map_or(span.end, |(time, _)| *time);
        let covered: u64 = inside.iter().map(|inner| overlap(*inner, begin, end)).sum();
        // Not more than the kernel has counted: a section that was lost on the way shows there only.
        let exclusive = (end - begin).saturating_sub(covered).min(left);
        left -= exclusive;
        pieces.push(Piece { context, exclusive });
    }
    pieces
}

fn overlap(inner: Inner, begin: u64, end: u64) -> u64 {
    inner.end.min(end).saturating_sub(inner.begin.max(begin))
}

impl Closed<'_> {
    /// Stretches of it that neither a section in it covers nor one of these on other threads, in order of time.
    pub fn gaps(&self, elsewhere: &[(u64, u64)]) -> Vec<Inner> {
        let elsewhere = elsewhere.iter().map(|&(begin, end)| Inner { begin, end });
        let mut covered: Vec<Inner> = self.inside.iter().copied().chain(elsewhere).collect();
        covered.sort_unstable_by_key(|inner| inner.begin);
        covered.push(Inner { begin: self.span.end, end: self.span.end });
        let (mut gaps, mut until) = (Vec::new(), self.span.begin);
        for Inner { begin, end } in covered {
            let begin = begin.min(self.span.end);
            if begin > until {
                gaps.push(Inner { begin: until, end: begin });
            }
            until = until.max(end);
        }
        gaps
    }
}
