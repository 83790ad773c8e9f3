//! First pass over the sections of a recording: the longest ones, the earliest begins of the others, and their threads.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use nntrace_common::record::SpanRecord;
use rustc_hash::FxHashMap;

use super::{Held, SharedNames, Sizes, Stretch, length};
use crate::{
    model::{section::Annotations, section_statistics::SectionTimes},
    record::{
        blocks::VisitBlocks,
        decode::{Event, EventReader},
        format::Stream,
        sections::{mark, section_name},
        threads::{ThreadUse, ThreadsSeen},
    },
};

/// Section that may be among the longest. It moves a lot among the others: what it is compared by stands in it.
struct Long {
    /// Length and number.
    length: (u64, u64),
    held: Box<Held>,
}

impl PartialEq for Long {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length
    }
}

impl Eq for Long {}

impl PartialOrd for Long {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Long {
    fn cmp(&self, other: &Self) -> Ordering {
        self.length.cmp(&other.length)
    }
}

/// Pass over the blocks that finds the longest sections.
pub(super) struct FirstPass<'a> {
    sizes: Sizes,
    late_names: &'a FxHashMap<u64, String>,
    /// Attributes of sections that are open, by thread and begin.
    annotations: Annotations,
    threads: ThreadsSeen,
    longest: BinaryHeap<Reverse<Long>>,
    names: SharedNames,
    /// Earliest begins of the sections that are not kept, by stretch.
    stretches: FxHashMap<u64, u64>,
    /// Stretch of the last section, and the earliest begin that has not been added to it.
    current: Stretch,
    /// Use of the block by the thread of each site.
    uses: Vec<Option<ThreadUse>>,
    /// Whether any is not kept.
    dropped: bool,
    /// Whether there are marks that are no sections.
    has_marks: bool,
}

/// Findings of the first pass.
pub(super) struct FirstFound {
    pub(super) threads: ThreadsSeen,
    pub(super) longest: Vec<Held>,
    /// Stretches with the earliest begins of the sections in them, by their places.
    pub(super) stretches: Vec<Stretch>,
    /// Whether there are others than the longest.
    pub(super) dropped: bool,
    /// Whether there are marks that are no sections. The stretches are theirs, too.
    pub(super) has_marks: bool,
}

impl<'a> FirstPass<'a> {
    /// Creates a pass.
    pub(super) fn new(sizes: Sizes, late_names: &'a FxHashMap<u64, String>) -> Self {
        Self {
            sizes,
            late_names,
            annotations: Annotations::default(),
            threads: ThreadsSeen::default(),
            longest: BinaryHeap::new(),
            names: SharedNames::default(),
            stretches: FxHashMap::default(),
            current: Stretch { place: 0, earliest: u64::MAX },
            uses: Vec::new(),
            dropped: false,
            has_marks: false,
        }
    }

    /// Returns the findings, after the last block.
    pub(super) fn finish(mut self) -> FirstFound {
        self.flush();
        let mut stretches: Vec<Stretch> =
            self.stretches.into_iter().map(|(place, earliest)| Stretch { place, earliest }).collect();
        stretches.sort_unstable_by_key(|stretch| stretch.place);
        FirstFound {
            threads: self.threads,
            longest: self.longest.into_iter().map(|Reverse(long)| *long.held).collect(),
            stretches,
            dropped: self.dropped,
            has_marks: self.has_marks,
        }
    }

    /// Takes the begin of a section that is not kept.
    #[inline]
    fn leave(&mut self, number: u64, begin: u64) {
        let place = number >> self.sizes.stretch;
        if place != self.current.place {
            self.flush();
            self.current = Stretch { place, earliest: u64::MAX };
        }
        self.current.earliest = self.current.earliest.min(begin);
    }

    fn flush(&mut self) {
        let Stretch { place, earliest } = self.current;
        if earliest != u64::MAX {
            let known = self.stretches.entry(place).or_insert(u64::MAX);
            *known = earliest.min(*known);
        }
    }

    /// Keeps a section, in place of the shortest one where there are enough.
    #[cold]
    fn keep(&mut self, span: SpanRecord, attributes: Option<String>, reader: &EventReader) {
        let number = reader.number();
        let name = self.names.shared(span.name, || section_name(&span, reader, self.late_names));
        let held = Box::new(Held::new(number, span, name, attributes));
        let long = Long { length: length(number, span.begin, span.end), held };
        if self.longest.len() < self.sizes.longest {
            self.longest.push(Reverse(long));
            return;
        }
        let shortest = self.longest.peek_mut().map(|mut top| std::mem::replace(&mut top.0, long).held);
        if let Some(shortest) = shortest {
            self.leave(shortest.number, shortest.span.begin);
        }
    }
}

impl VisitBlocks for FirstPass<'_> {
    #[inline]
    fn section(&mut self, stream: Stream, site: usize, times: SectionTimes, reader: &EventReader) {
        let number = reader.number();
        if site >= self.uses.len() {
            self.uses.resize_with(site + 1, || None);
        }
        match &mut self.uses[site] {
            Some(used) => used.add(number, times.begin, times.end),
            used => *used = reader.section_at(site, times).map(|span| ThreadUse::new(stream, number, &span)),
        }
        let has_room = self.longest.len() < self.sizes.longest;
        self.dropped |= !has_room;
        let length = length(number, times.begin, times.end);
        let is_long = has_room || self.longest.peek().is_some_and(|shortest| length > shortest.0.length);
        if !is_long && self.annotations.is_empty() {
            self.leave(number, times.begin);
            return;
        }
        let Some(span) = reader.section_at(site, times) else { return };
        let attributes = self.annotations.end(&span);
        if is_long {
            self.keep(span, attributes, reader);
        } else {
            self.leave(number, times.begin);
        }
    }

    fn other(&mut self, stream: Stream, event: &Event, reader: &EventReader) {
        self.annotations.take(event, reader.content());
        let number = reader.number();
        self.threads.other(stream, number, event);
        if let Some(mark) = mark(event, reader, self.late_names) {
            self.threads.mark(stream, number, &mark);
            self.leave(number, mark.time);
            self.has_marks = true;
        }
    }

    fn end(&mut self, _stream: Stream, _reader: &EventReader) {
        for used in self.uses.drain(..).flatten() {
            self.threads.sections(&used);
        }
    }
}
