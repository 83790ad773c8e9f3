//! Sections of a recording in the order in which they began, and the marks among them that are no sections.
//!
//! A recording has them in about the order in which they ended. A first pass keeps the longest ones, and the earliest begin
//! of all others from each stretch of the recording on: a second pass then knows, at each of its stretches, up to which time
//! nothing earlier can come, and sorts what is before that. Memory is taken by the longest, and by as many others as end while
//! the longest of these lasts.

mod first_pass;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    iter::Peekable,
    mem,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, mpsc},
    thread,
};

use nntrace_common::record::SpanRecord;
use rustc_hash::FxHashMap;
use zerocopy::FromZeros as _;

use first_pass::{FirstFound, FirstPass};

use super::{
    blocks::visit_blocks,
    error::ReadError,
    order::Ordered,
    read::{Block, Files},
    sections::{FoundSection, SectionPass, TakeSections, late_names},
    threads::{StreamUse, ThreadSections, Threads},
};
use crate::model::{
    marks::OpenSection,
    run_facts::Loss,
    section::{Mark, Section},
    unfinished_sections::UnfinishedSection,
};

/// Sizes by which memory is bounded.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Sections that are kept from the first pass.
    longest: usize,
    /// Events of a stretch, as a power of two.
    stretch: u32,
    /// Sections of threads that are sorted at once, each thread on its own.
    together: u64,
}

const SIZES: Sizes = Sizes { longest: 1 << 16, stretch: 13, together: 1 << 18 };

/// Sections that are handed from the thread that reads them to the one that takes them at once.
const BATCH: usize = 1 << 12;
/// Batches that wait for the latter at most.
const MOST_BATCHES: usize = 4;

/// Names that are shared among sections at most.
const MOST_NAMES: usize = 1 << 16;

/// Section, or mark that is none.
#[derive(Clone, Debug)]
pub enum SectionOrMark<'a> {
    /// Section.
    Section(Section<'a>),
    /// Mark that is no section.
    Mark(Mark<'a>),
}

/// Sections of a recording by their begins; those of one instant by thread, in the order of ancestry, then from the outside
/// in.
pub struct OrderedSections {
    files: Files,
    sizes: Sizes,
    /// First event from which on every one should be there.
    first: u64,
    until: u64,
    late_names: FxHashMap<u64, String>,
    threads: Threads,
    seen: FxHashMap<(u32, u32), ThreadSections>,
    /// Sections of the first pass that the second one leaves out.
    longest: Vec<Held>,
    /// Length and number above which a section is among these; `None` if all are.
    longer_than: Option<(u64, u64)>,
    /// Whether there are marks that are no sections.
    has_marks: bool,
    stretches: Vec<Stretch>,
    damage: Vec<String>,
    loss: Loss,
    open: Vec<OpenSection>,
}

/// Stretch of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Place: the number of its events without the lowest bits.
    place: u64,
    /// Earliest begin of a section in it, or in a later one, that is not among the longest, or time of another mark, ns.
    earliest: u64,
}

/// Section that is kept, or another mark.
#[derive(Clone, Debug)]
struct Held {
    number: u64,
    /// Section; of another mark, its place, with no length.
    span: SpanRecord,
    /// Place of its thread.
    thread: Option<u32>,
    /// Name; of another mark, its text.
    name: Arc<str>,
    attributes: Option<Box<str>>,
    is_mark: bool,
}

/// Order of sections: begin, thread, depth, number.
type Key = (u64, u32, u8, u64);

impl Held {
    fn new(number: u64, span: SpanRecord, name: Arc<str>, attributes: Option<String>) -> Self {
        Self { number, span, thread: None, name, attributes: attributes.map(Into::into), is_mark: false }
    }

    fn of_mark(number: u64, mark: &Mark<'_>, thread: Option<u32>) -> Self {
        let Mark { pid: tgid, tid, time, depth, ref payload, .. } = *mark;
        let span = SpanRecord { tgid, tid, begin: time, end: time, depth, ..SpanRecord::new_zeroed() };
        Self { thread, is_mark: true, ..Self::new(number, span, payload.as_ref().into(), None) }
    }

    /// Returns it in the common form; `None` for a section without a layer and a phase.
    fn section_or_mark(&self) -> Option<SectionOrMark<'_>> {
        if self.is_mark {
            let SpanRecord { tgid: pid, tid, begin: time, depth, .. } = self.span;
            let payload = Cow::Borrowed(&*self.name);
            return Some(SectionOrMark::Mark(Mark { pid, tid, time, sequence: 0, depth, payload }));
        }
        let attributes = self.attributes.as_deref().map(Cow::Borrowed);
        Section::of(&self.span, Some(&self.name), attributes).map(SectionOrMark::Section)
    }

    /// Hands it to a consumer of sections.
    fn hand_out(
        &self,
        take: &mut impl FnMut(&Section<'_>, Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.section_or_mark() {
            Some(SectionOrMark::Section(section)) => take(&section, self.thread),
            _ => ControlFlow::Continue(()),
        }
    }

    fn key(&self) -> Key {
        (self.span.begin, self.thread.unwrap_or(u32::MAX), self.span.depth, self.number)
    }
}

/// Length of a section, and its number: no two are equal.
fn length(number: u64, begin: u64, end: u64) -> (u64, u64) {
    (end.saturating_sub(begin), number)
}

/// Texts of names that several sections share.
#[derive(Default)]
struct SharedNames(FxHashMap<u64, Arc<str>>);

impl SharedNames {
    #[inline]
    fn shared<'a>(&mut self, hash: u64, text: impl FnOnce() -> Cow<'a, str>) -> Arc<str> {
        if let Some(name) = self.0.get(&hash) {
            return Arc::clone(name);
        }
        // Sections that have one keep it.
        if self.0.len() >= MOST_NAMES {
            self.0.clear();
        }
        let name: Arc<str> = (&*text()).into();
        self.0.insert(hash, Arc::clone(&name));
        name
    }
}

impl OrderedSections {
    /// Reads a recording: all events of one that was not ended, too, which its last state need not cover.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(folder: &Path) -> Result<Self, ReadError> {
        Self::with_sizes(folder, SIZES)
    }

    fn with_sizes(folder: &Path, sizes: Sizes) -> Result<Self, ReadError> {
        let files = Files::open(folder)?;
        let (covered, state, mut damage) = files.state()?;
        let until = files.last_event_with(&state, covered);
        let late_names = late_names(&state);
        let mut pass = FirstPass::new(sizes, &late_names);
        damage.extend(visit_blocks(&files, until, &mut pass));
        let FirstFound { threads, mut longest, mut stretches, dropped, has_marks } = pass.finish();
        let (threads, seen) = threads.named();
        let longer_than =
            longest.iter().map(|held| length(held.number, held.span.begin, held.span.end)).min();
        for held in &mut longest {
            held.thread = threads.place(held.span.tgid, held.span.tid, held.span.seen_at());
        }
        longest.sort_unstable_by_key(Held::key);
        // From the end on: the earliest of all that follow.
        let mut earliest = u64::MAX;
        for stretch in stretches.iter_mut().rev() {
            earliest = earliest.min(stretch.earliest);
            stretch.earliest = earliest;
        }
        Ok(Self {
            files,
            sizes,
            first: state.first_event(),
            until,
            late_names,
            threads,
            seen,
            longest,
            longer_than: longer_than.filter(|_| dropped),
            has_marks,
            stretches,
            damage,
            loss: state.loss.clone(),
            open: state.open_sections().collect(),
        })
    }

    /// Returns texts on what is damaged.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Returns the losses of the run.
    #[must_use]
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Returns the sections that had not ended, which are not among these.
    #[must_use]
    pub fn unfinished(&self) -> Vec<UnfinishedSection> {
        let threads = self.threads.all().iter().map(|thread| (thread.tid, thread.pid));
        let pids: BTreeMap<u32, u32> = threads.collect();
        let name = |hash| self.late_names.get(&hash).cloned().unwrap_or_else(|| format!("?{hash:016x}"));
        UnfinishedSection::all(&self.open, name, |tid| pids.get(&tid).copied())
    }

    /// Returns the threads that have sections.
    #[must_use]
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Hands out the sections of all threads by their begins, each with the place of its thread, until the consumer has
    /// enough.
    pub fn visit(
        &self,
        mut take: impl FnMut(&Section<'_>, Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.visit_held(false, |_| true, |_| true, &mut |held| held.hand_out(&mut take))
    }

    /// Hands out the sections of one thread after the other, each by their begins.
    pub fn visit_by_thread(
        &self,
        mut take: impl FnMut(&Section<'_>, Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.held_by_thread(false, &mut |held| held.hand_out(&mut take))
    }

    /// Hands out the sections and the other marks of one thread after the other, each by their begins, also those of threads that
    /// take no part in the accounting: the other side of a hand-over may be theirs. They are read by another thread meanwhile.
    pub fn visit_by_thread_with_marks(
        &self,
        mut take: impl FnMut(&SectionOrMark<'_>, Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        thread::scope(|scope| {
            let (to_taker, batches) = mpsc::sync_channel(MOST_BATCHES);
            scope.spawn(move || self.send_by_thread(&to_taker));
            batches.into_iter().flatten().try_for_each(|held: Held| match held.section_or_mark() {
                Some(found) => take(&found, held.thread),
                None => ControlFlow::Continue(()),
            })
        })
    }

    /// Sends the sections and the other marks of one thread after the other, until nobody takes them any more.
    fn send_by_thread(&self, to_taker: &mpsc::SyncSender<Vec<Held>>) {
        let mut batch = Vec::with_capacity(BATCH);
        let sent = self.held_by_thread(true, &mut |held| {
            batch.push(held.clone());
            if batch.len() < BATCH {
                return ControlFlow::Continue(());
            }
            let full = mem::replace(&mut batch, Vec::with_capacity(BATCH));
            to_taker.send(full).map_or(ControlFlow::Break(()), ControlFlow::Continue)
        });
        if sent.is_continue() {
            // Who takes no more has all that it wants.
            let _ = to_taker.send(batch);
        }
    }

    fn held_by_thread(
        &self,
        with_marks: bool,
        take: &mut impl FnMut(&Held) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut places: Vec<Option<u32>> = (0..self.threads.all().len() as u32).map(Some).collect();
        if self.seen.keys().any(|(pid, tid)| !self.threads.has(*pid, *tid)) {
            places.push(None);
        }
        let mut first = 0;
        while first < places.len() {
            let mut last = first;
            let mut count = self.count(places[first]);
            while last + 1 < places.len() && count + self.count(places[last + 1]) <= self.sizes.together {
                last += 1;
                count += self.count(places[last]);
            }
            let place = |place: Option<u32>| place.map_or(u32::MAX, |place| place);
            let wanted = place(places[first])..=place(places[last]);
            let uses = self.uses(&places[first..=last]);
            let is_wanted = |thread: Option<u32>| wanted.contains(&place(thread));
            let has_any = |block: &Block| {
                let stream = self.files.stream(block);
                let overlaps = |used: &StreamUse| {
                    used.stream == stream
                        && used.first <= block.header.last
                        && block.header.first <= used.last
                };
                uses.as_ref().is_none_or(|uses| uses.iter().any(overlaps))
            };
            if first == last {
                self.visit_held(with_marks, is_wanted, has_any, take)?;
            } else {
                let mut all: Vec<Held> = Vec::new();
                let _ = self.visit_held(with_marks, is_wanted, has_any, &mut |held| {
                    all.push(held.clone());
                    ControlFlow::Continue(())
                });
                // What is equal stays in its order, that of the begins.
                all.sort_by_key(|held| place(held.thread));
                all.iter().try_for_each(&mut *take)?;
            }
            first = last + 1;
        }
        ControlFlow::Continue(())
    }

    /// Returns the number of sections and other marks of the thread at a place at most.
    fn count(&self, place: Option<u32>) -> u64 {
        let thread = place.and_then(|place| self.threads.all().get(place as usize));
        thread.and_then(|thread| self.seen.get(&(thread.pid, thread.tid))).map_or(0, |seen| seen.count)
    }

    /// Returns where events of threads are; `None` if they may be anywhere.
    fn uses(&self, places: &[Option<u32>]) -> Option<Vec<StreamUse>> {
        let mut uses = Vec::new();
        for place in places {
            let thread = self.threads.all().get((*place)? as usize)?;
            uses.extend_from_slice(&self.seen.get(&(thread.pid, thread.tid))?.streams);
        }
        Some(uses)
    }

    fn visit_held(
        &self,
        with_marks: bool,
        is_wanted: impl Fn(Option<u32>) -> bool,
        has_any: impl Fn(&Block) -> bool,
        take: &mut impl FnMut(&Held) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let counts = |span: &SpanRecord| {
            with_marks
                || !span.is_provisional()
                || self.seen.get(&(span.tgid, span.tid)).is_some_and(|thread| thread.takes_part)
        };
        let mut longest =
            self.longest.iter().filter(|held| is_wanted(held.thread) && counts(&held.span)).peekable();
        let has_marks = with_marks && self.has_marks;
        if self.longer_than.is_some() || has_marks {
            let second = SecondPass {
                threads: &self.threads,
                shorter_than: self.longer_than.unwrap_or_default(),
                with_marks: has_marks,
                is_wanted: |span: Option<&SpanRecord>, thread| is_wanted(thread) && span.is_none_or(counts),
                names: SharedNames::default(),
                waiting: Vec::new(),
                order: Vec::new(),
                kept: 0,
            };
            let mut pass = SectionPass::new(&self.late_names, second);
            let mut ordered = Ordered::of_blocks(&self.files, self.first, self.until, has_any);
            for (place, stretch) in self.stretches.iter().enumerate() {
                let bits = self.sizes.stretch;
                let last = stretch.place << bits | ((1 << bits) - 1);
                ordered.visit(last.min(self.until), &mut pass);
                let earliest = self.stretches.get(place + 1).map_or(u64::MAX, |next| next.earliest);
                pass.take.hand_out(earliest, &mut longest, take)?;
            }
        }
        longest.try_for_each(take)
    }
}

/// Pass that sorts the sections that are not among the longest, and other marks.
struct SecondPass<'a, W> {
    threads: &'a Threads,
    /// Length and number from which on sections are among the longest.
    shorter_than: (u64, u64),
    with_marks: bool,
    /// Whether a section of a thread, or another mark of it, is handed out.
    is_wanted: W,
    names: SharedNames,
    /// Sections that something earlier may follow.
    waiting: Vec<Held>,
    /// Keys of those that are handed out, with their places among the waiting ones.
    order: Vec<(Key, u32)>,
    /// Number of sections that went on waiting the last time.
    kept: usize,
}

impl<W: Fn(Option<&SpanRecord>, Option<u32>) -> bool> TakeSections for SecondPass<'_, W> {
    #[inline]
    fn section(&mut self, found: FoundSection<'_>) {
        let FoundSection { number, span, .. } = found;
        if length(number, span.begin, span.end) >= self.shorter_than {
            return;
        }
        let thread = self.threads.place(span.tgid, span.tid, span.seen_at());
        if (self.is_wanted)(Some(span), thread) {
            let name = self.names.shared(span.name, || found.name());
            self.waiting.push(Held { thread, ..Held::new(number, *span, name, found.attributes) });
        }
    }

    fn mark(&mut self, number: u64, mark: &Mark<'_>) {
        let thread = self.threads.place(mark.pid, mark.tid, mark.time);
        if self.with_marks && (self.is_wanted)(None, thread) {
            self.waiting.push(Held::of_mark(number, mark, thread));
        }
    }
}

impl<W> SecondPass<'_, W> {
    /// Hands out the sections that begin before a time (ns), which nothing earlier follows, and the longest ones among them.
    fn hand_out<'h>(
        &mut self,
        until: u64,
        longest: &mut Peekable<impl Iterator<Item = &'h Held>>,
        take: &mut impl FnMut(&Held) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Those that wait are looked through only when there are twice as many.
        if until != u64::MAX && self.waiting.len() < 2 * self.kept {
            return ControlFlow::Continue(());
        }
        let due =
            self.waiting.iter().zip(0..).filter(|(held, _)| held.span.begin < until || until == u64::MAX);
        self.order.clear();
        self.order.extend(due.map(|(held, place)| (held.key(), place)));
        self.order.sort_unstable();
        for (key, place) in &self.order {
            while let Some(long) = longest.next_if(|long| long.key() < *key) {
                take(long)?;
            }
            take(&self.waiting[*place as usize])?;
        }
        self.waiting.retain(|held| held.span.begin >= until && until != u64::MAX);
        self.kept = self.waiting.len();
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
