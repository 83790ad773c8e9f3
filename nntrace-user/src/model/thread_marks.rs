//! Accounting of the marks of one thread in user space: the same code that the kernel programs run.

use nntrace_common::{
    diagnostic::{DiagnosticCount, DiagnosticKind, Diagnostics, HeldCount, HeldDiagnostics},
    record::SpanRecord,
    section_begin::ParsedBegin,
    stack::{Closed, Stack},
};

use super::{diagnostics::DiagnosticCounts, marks::OpenSection, stacks::Paths};

/// Open sections of a thread, and its part in the accounting.
pub(crate) struct ThreadMarks {
    stack: Box<Stack>,
    is_marked: bool,
    /// Diagnostics of a thread that takes no part yet: they count only if it does later.
    held: Option<Box<DiagnosticCounts>>,
    /// Sections that were open when marks were lost, and lost begins at most: their ends may still come, and are no error of
    /// the program.
    forgotten: u32,
}

impl Default for ThreadMarks {
    fn default() -> Self {
        Self::new(&Stack::EMPTY, false, 0, &HeldDiagnostics::NONE)
    }
}

impl ThreadMarks {
    /// Creates the state of a thread with open sections, which takes part in the accounting or does not yet, with its
    /// diagnostics so far in that case.
    #[must_use]
    pub(crate) fn new(stack: &Stack, is_marked: bool, tid: u32, held: &HeldDiagnostics) -> Self {
        let mut counts: Option<Box<DiagnosticCounts>> = None;
        for (kind, HeldCount { count, first_ns }) in held.iter() {
            let first = DiagnosticCount::first(first_ns, tid, b"");
            counts.get_or_insert_default().add_counted(kind, &DiagnosticCount { count, ..first });
        }
        Self { stack: Box::new(*stack), is_marked, held: counts, forgotten: 0 }
    }

    /// Whether the thread takes part in the accounting.
    #[must_use]
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Returns the open sections.
    #[must_use]
    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Sets the last change of the application's phases, for sections that begin from now on.
    pub(crate) fn set_slot(&mut self, slot: u16) {
        self.stack.set_slot(slot);
    }

    /// Makes the thread take part from now on, if the begin does that; returns whether it did not before.
    #[inline]
    pub(crate) fn join(&mut self, begin: &ParsedBegin) -> bool {
        let joins = begin.is_marked && !self.is_marked;
        self.is_marked |= joins;
        joins
    }

    /// Begins a section at `now` (ns); one that a switch closes is passed to `closed`. Diagnostics are returned.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        now: u64,
        begin: &ParsedBegin,
        closed: impl FnMut(&Stack, &Closed),
    ) -> Diagnostics {
        self.stack.begin(now, begin.prefix, begin.label, begin.name, closed)
    }

    /// Ends the innermost section at `now` (ns), which is passed to `closed` if it was marked. Diagnostics are returned.
    #[inline]
    pub(crate) fn end(&mut self, now: u64, closed: impl FnMut(&Stack, &Closed)) -> Diagnostics {
        let found = self.stack.end(now, closed);
        if self.forgotten > 0 && found.has(DiagnosticKind::UnmatchedEnd) {
            self.forgotten -= 1;
            return Diagnostics::NONE;
        }
        found
    }

    /// Counts the diagnostics of a mark, once the thread takes part.
    #[inline]
    pub(crate) fn diagnose(
        &mut self,
        found: Diagnostics,
        now: u64,
        tid: u32,
        mark: &[u8],
        counts: &mut DiagnosticCounts,
    ) {
        if !found.is_empty() {
            let counts = if self.is_marked { counts } else { self.held.get_or_insert_default() };
            counts.add_all(found, now, tid, mark);
        }
    }

    /// Adds the diagnostics from before the thread took part, if it does by now.
    pub(crate) fn release_held(&self, counts: &mut DiagnosticCounts) {
        if let Some(held) = self.held.as_deref().filter(|_| self.is_marked) {
            counts.merge(held);
        }
    }

    /// Returns the open marked sections, if the thread takes part. `sequence` has the [`Stamp::sequence`] of the begin at a depth.
    ///
    /// [`Stamp::sequence`]: nntrace_common::stamp::Stamp::sequence
    pub(crate) fn open(
        &self,
        (pid, tid): (u32, u32),
        sequence: impl Fn(u8) -> u32,
    ) -> impl Iterator<Item = OpenSection> {
        let frames = self.is_marked.then(|| self.stack.open_frames());
        frames
            .into_iter()
            .flatten()
            .map(move |(depth, frame)| OpenSection::new(Some(pid), tid, frame, sequence(depth)))
    }

    /// Forgets the open sections, as this many marks are lost.
    pub(crate) fn forget_open(&mut self, lost: u32) {
        let begun = u32::from(self.stack.depth()).saturating_add(lost);
        self.forgotten = self.forgotten.saturating_add(begun);
        *self.stack = Stack::EMPTY;
    }
}

/// Returns the record of a closed frame, whose path is known from then on.
#[inline]
pub(crate) fn span(
    (tgid, tid, is_marked): (u32, u32, bool),
    stack: &Stack,
    closed: &Closed,
    paths: &mut Paths,
) -> SpanRecord {
    know_path(stack, closed, paths);
    SpanRecord::new(tgid, tid, is_marked, closed)
}

/// Adds the path of a frame that was just closed, if it is new.
#[inline]
pub(crate) fn know_path(stack: &Stack, closed: &Closed, paths: &mut Paths) {
    if !paths.contains(closed.path) {
        stack.steps(closed.depth, |path, step| paths.insert(path, step));
    }
}
