//! Context of each thread, and the sections that ended inside one that is still open.
//!
//! Each begin and each receive comes with the number of sections that were open then. Which still are follows from that
//! alone, so that a section whose end was lost is forgotten by the next one at its place.

use nntrace_common::{record::SpanRecord, stack::Class, stamp::Stamp};
use rustc_hash::FxHashMap;

use super::context::Context;
use crate::model::limits::Limits;

/// Ended sections that one open section may hold one by one; beyond, those are kept as one.
const MOST_CLOSED: usize = 1 << 12;
/// Takes in sections that are open, of one thread; of more, the older half is forgotten.
const MOST_ENTRIES: usize = 1 << 10;

/// All threads, by id.
pub(crate) struct Threads {
    by_tid: FxHashMap<u32, Thread>,
    /// Number of threads that are kept; beyond it, those with nothing to remember are forgotten, or else all.
    most: usize,
    /// The sections directly in the one that ended last.
    inside: Vec<Inner>,
    /// Begins and takes that were forgotten before the section that they were in ended.
    pub(super) forgotten: u64,
}

#[derive(Default)]
struct Thread {
    /// Context that the thread began with.
    base: Context,
    /// Begins and receives whose sections are open, in order of time.
    entries: Vec<Entry>,
    /// How many of these are known to hold: of the others, some may have ended in the instant that they are of.
    settled: usize,
    /// Sections that ended, in order of time, whose outer section has not.
    closed: Vec<Inner>,
}

#[derive(Clone, Copy)]
enum Entry {
    /// A section that is open.
    Begin(AnnotatedBegin),
    /// Work that was taken over.
    Received { at: Stamp, depth: u8, context: Context },
}

impl Entry {
    fn at(&self) -> Stamp {
        match self {
            Self::Begin(begin) => begin.at,
            Self::Received { at, .. } => *at,
        }
    }

    /// Sections that are open around it.
    fn depth(&self) -> u8 {
        match self {
            Self::Begin(begin) => begin.depth,
            Self::Received { depth, .. } => *depth,
        }
    }

    fn context(&self) -> Context {
        match self {
            Self::Begin(begin) => begin.context,
            Self::Received { context, .. } => *context,
        }
    }

    fn begin(&self) -> Option<AnnotatedBegin> {
        match self {
            Self::Begin(begin) => Some(*begin),
            Self::Received { .. } => None,
        }
    }

    /// Whether it still holds when this one comes, which comes later.
    fn holds_at(&self, next: &Self) -> bool {
        match self {
            Self::Begin(_) => self.depth() < next.depth(),
            // Outside of any section nothing remembers what was taken over before.
            Self::Received { depth: 0, .. } => next.depth() > 0 || next.begin().is_some(),
            Self::Received { depth, .. } => *depth <= next.depth(),
        }
    }
}

/// A section with attributes that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnnotatedBegin {
    /// When it began.
    pub at: Stamp,
    /// Sections that were open around it.
    pub depth: u8,
    /// Hash of its name.
    pub name: u64,
    /// Context of the section.
    pub context: Context,
    /// Whether it is an iteration in its own right.
    pub is_root: bool,
    /// Whether it runs work that was handed over.
    pub comes_by_hand: bool,
    /// Its number in the graph.
    pub node: Option<u32>,
}

/// Stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Begin, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
}

/// A section that ended inside of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inner {
    /// When it began.
    begin: Stamp,
    /// When it ended.
    end: Stamp,
}

/// A section that ended.
pub(super) struct Closed<'a> {
    /// Context of the section as it began.
    pub context: Context,
    /// Its begin, if that was annotated.
    pub begin: Option<AnnotatedBegin>,
    /// Its exclusive time, ns, that belongs to what it belongs to.
    pub charged: u64,
    /// The rest of that, by the work that was taken over inside of it.
    pub taken_over: Vec<Piece>,
    /// The sections directly in it.
    inside: &'a [Inner],
    /// Whether what it belongs to came from another thread, and nothing of this one is around it.
    pub comes_from_elsewhere: bool,
    span: Stretch,
}

/// Exclusive time that belongs to one context.
pub(super) struct Piece {
    /// Context of the work that was taken over.
    pub context: Context,
    /// When it was taken over, ns.
    pub begin: u64,
    /// Time, ns.
    pub exclusive: u64,
}

impl Threads {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { by_tid: FxHashMap::default(), most: limits.threads, inside: Vec::new(), forgotten: 0 }
    }

    fn thread(&mut self, tid: u32) -> &mut Thread {
        if self.by_tid.len() >= self.most && !self.by_tid.contains_key(&tid) {
            self.forget_threads();
        }
        self.by_tid.entry(tid).or_default()
    }

    /// Forgets threads that have nothing to remember; where most have, all: what they work for is unknown then.
    #[cold]
    fn forget_threads(&mut self) {
        self.by_tid.retain(|_, thread| thread.has_something());
        if self.by_tid.len() > self.most / 2 {
            self.forgotten += self.by_tid.len() as u64;
            self.by_tid.clear();
        }
    }

    /// Names of open sections with attributes.
    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        let entries = self.by_tid.values().flat_map(|thread| &thread.entries);
        entries.filter_map(|entry| entry.begin().map(|begin| begin.name))
    }

    /// Current context of a thread at this depth.
    pub(super) fn context(&self, tid: u32, depth: u8) -> Context {
        self.by_tid.get(&tid).map_or_else(Context::default, |thread| thread.context_at(depth))
    }

    /// Current context of a thread at whatever depth.
    pub(super) fn last_context(&self, tid: u32) -> Context {
        self.by_tid
            .get(&tid)
            .map_or_else(Context::default, |thread| thread.entries.last().map_or(thread.base, Entry::context))
    }

    /// A thread begins, and inherits.
    pub(super) fn create(&mut self, tid: u32, base: Context) {
        if base == Context::default() {
            self.by_tid.remove(&tid);
        } else {
            *self.thread(tid) = Thread { base, ..Thread::default() };
        }
    }

    /// A thread ends.
    pub(super) fn exit(&mut self, tid: u32) {
        self.by_tid.remove(&tid);
    }

    /// A section with attributes begins.
    pub(super) fn begin(&mut self, tid: u32, begin: AnnotatedBegin) {
        let forgotten = self.thread(tid).push(Entry::Begin(begin));
        self.forgotten += forgotten;
    }

    /// A thread takes over work, for as long as the section lasts that it is in: the one with this many around it, less one.
    pub(super) fn receive(&mut self, tid: u32, at: Stamp, depth: u8, context: Context) {
        let forgotten = self.thread(tid).push(Entry::Received { at, depth, context });
        self.forgotten += forgotten;
    }

    /// A section ends.
    pub(super) fn close(&mut self, span: &SpanRecord) -> Closed<'_> {
        self.thread(span.tid);
        self.by_tid.entry(span.tid).or_default().close(span, &mut self.inside)
    }

    /// The section with `depth` others around it ends before anything is counted. Returns its begin, and those of sections in it
    /// whose ends were lost.
    pub(super) fn end(&mut self, tid: u32, depth: u8) -> Vec<AnnotatedBegin> {
        let Some(thread) = self.by_tid.get_mut(&tid) else { return Vec::new() };
        let is_around = |entry: &Entry| match entry {
            Entry::Begin(begin) => begin.depth < depth,
            Entry::Received { depth: taken, .. } => *taken <= depth,
        };
        let first = thread.entries.iter().rposition(is_around).map_or(0, |at| at + 1);
        thread.settled = thread.settled.min(first);
        thread.entries.drain(first..).filter_map(|entry| entry.begin()).collect()
    }

    /// How many entries are kept, of all threads.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.by_tid.values().map(|thread| thread.entries.len() + thread.closed.len()).sum()
    }
}

impl Thread {
    fn has_something(&self) -> bool {
        !self.entries.is_empty() || !self.closed.is_empty() || self.base != Context::default()
    }

    /// Context at this depth.
    fn context_at(&self, depth: u8) -> Context {
        let holds = |entry: &&Entry| match entry {
            Entry::Begin(begin) => begin.depth < depth,
            Entry::Received { depth: taken, .. } => *taken <= depth,
        };
        self.entries.iter().rev().find(holds).map_or(self.base, Entry::context)
    }

    /// Returns how many entries were forgotten.
    fn push(&mut self, entry: Entry) -> u64 {
        self.settle_before(entry.at());
        let forgotten = if self.entries.len() >= MOST_ENTRIES { self.forget_takes() } else { 0 };
        self.entries.push(entry);
        forgotten
    }

    /// Forgets what does not hold any more, by what came after it before this moment: all ends of before have come,
    /// but of the sections that end in this instant, some may come yet.
    fn settle_before(&mut self, at: Stamp) {
        if self.entries.last().is_none_or(|last| last.at() >= at) {
            return;
        }
        let mut settled = self.settled;
        for next in self.settled..self.entries.len() {
            while settled > 0 && !self.entries[settled - 1].holds_at(&self.entries[next]) {
                settled -= 1;
            }
            self.entries.swap(settled, next);
            settled += 1;
        }
        self.entries.truncate(settled);
        self.settled = settled;
    }

    /// Work that was taken over long ago in sections that last belongs to these sections themselves from here on.
    #[cold]
    fn forget_takes(&mut self) -> u64 {
        let (half, before) = (self.entries.len() / 2, self.entries.len());
        let mut number = 0;
        self.entries.retain(|entry| {
            number += 1;
            number > half || entry.begin().is_some()
        });
        // No thread has this many open sections: their ends were lost.
        if self.entries.len() > before * 3 / 4 {
            self.entries.drain(..half);
        }
        self.settled = 0;
        (before - self.entries.len()) as u64
    }

    /// Where the begin of a section stands that ends.
    fn place(&self, span: &SpanRecord) -> Option<usize> {
        let is_this = |entry: &Entry| matches!(entry, Entry::Begin(begin) if begin.at == span.begin_stamp() && begin.depth == span.depth && begin.name == span.name);
        // Of several that began in one instant, the first ends first.
        let first =
            self.entries.iter().rposition(|entry| entry.at() < span.begin_stamp()).map_or(0, |at| at + 1);
        self.entries[first..].iter().position(is_this).map(|at| first + at)
    }

    fn close<'a>(&mut self, span: &SpanRecord, inside: &'a mut Vec<Inner>) -> Closed<'a> {
        let (begin_stamp, end_stamp) = (span.begin_stamp(), span.end_stamp());
        self.settle_before(end_stamp);
        inside.clear();
        // The thread that waited for it has its context, and was in other sections meanwhile.
        if span.class == Class::Asynchronous as u8 {
            return Closed {
                context: self.entries.last().map_or(self.base, Entry::context).inside(),
                begin: None,
                charged: span.exclusive,
                taken_over: Vec::new(),
                inside,
                comes_from_elsewhere: false,
                span: Stretch { begin: span.begin, end: span.end },
            };
        }
        let place = self.place(span);
        // What begins with the end of this one is no part of it.
        let after = self.entries.iter().rposition(|entry| entry.at() < end_stamp).map_or(0, |at| at + 1);
        let own = place.unwrap_or_else(|| {
            let is_around = |entry: &Entry| entry.at() < begin_stamp || entry.depth() <= span.depth;
            self.entries[..after].iter().rposition(is_around).map_or(0, |at| at + 1)
        });
        let begin = place.and_then(|at| self.entries[at].begin());
        let before = if own == 0 { self.base } else { self.entries[own - 1].context() };
        let context = begin.map_or_else(|| before.inside(), |begin| begin.context);
        self.take_inside(span, inside);
        let received = self.entries[own.min(after)..after].iter().filter(|entry| entry.begin().is_none());
        let taken_over = pieces(span, received.map(|entry| (entry.at().time, entry.context())), inside);
        // Sections that are still in it are those whose end was lost; so are those whose place it took.
        let mut first = own;
        while place.is_some() && first > 0 && !self.entries[first - 1].holds_at(&self.entries[own]) {
            first -= 1;
        }
        self.entries.drain(first..after.max(place.map_or(own, |at| at + 1)));
        self.settled = self.settled.min(first);
        let comes_from_elsewhere = match begin {
            Some(begin) => begin.comes_by_hand || own == 0,
            None => own == 0 && span.is_outermost(),
        };
        let closed = Inner { begin: begin_stamp, end: end_stamp };
        if !span.is_outermost() {
            self.closed.push(closed);
            self.limit();
        }
        Closed {
            context,
            begin,
            charged: span.exclusive - taken_over.iter().map(|piece| piece.exclusive).sum::<u64>(),
            taken_over,
            inside,
            comes_from_elsewhere,
            span: Stretch { begin: span.begin, end: span.end },
        }
    }

    /// The sections directly in this one.
    fn take_inside(&mut self, span: &SpanRecord, inside: &mut Vec<Inner>) {
        let first =
            self.closed.iter().rposition(|inner| inner.begin < span.begin_stamp()).map_or(0, |at| at + 1);
        inside.extend(self.closed.drain(first..));
        if span.is_outermost() {
            self.closed.clear();
        }
    }

    /// An outer section may last for ever.
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
        pieces.push(Piece { context, begin, exclusive });
    }
    pieces
}

fn overlap(inner: Inner, begin: u64, end: u64) -> u64 {
    inner.end.time.min(end).saturating_sub(inner.begin.time.max(begin))
}

impl Closed<'_> {
    /// Stretches of it that neither a section in it covers nor one of these on other threads, in order of time.
    pub(crate) fn gaps(&self, elsewhere: &[(u64, u64)]) -> Vec<Stretch> {
        let elsewhere = elsewhere.iter().map(|&(begin, end)| Stretch { begin, end });
        let inside = self.inside.iter().map(|inner| Stretch { begin: inner.begin.time, end: inner.end.time });
        let mut covered: Vec<Stretch> = inside.chain(elsewhere).collect();
        covered.sort_unstable_by_key(|inner| inner.begin);
        covered.push(Stretch { begin: self.span.end, end: self.span.end });
        let (mut gaps, mut until) = (Vec::new(), self.span.begin);
        for Stretch { begin, end } in covered {
            let begin = begin.min(self.span.end);
            if begin > until {
                gaps.push(Stretch { begin: until, end: begin });
            }
            until = until.max(end);
        }
        gaps
    }
}
