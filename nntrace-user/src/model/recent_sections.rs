//! The sections that ended last, one by one, for views that follow a run.

use std::collections::VecDeque;

use nntrace_common::{layer::Tag, record::SpanRecord, stack::Class};

/// Sections that are kept: 1 MB.
const MOST: usize = 16_384;

/// Section that ended lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentSection {
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Begin, ns.
    pub(crate) begin: u64,
    /// End, ns.
    pub(crate) end: u64,
    /// Duration without the marked sections in it, ns.
    pub(crate) exclusive: u64,
    /// Hash of its name.
    pub(crate) name: u64,
    /// Layer and phase, as written.
    pub(crate) tag: Tag,
    /// Sections that were open around it, foreign ones too.
    pub(crate) depth: u8,
}

/// The sections that ended last, in bounded memory.
#[derive(Clone, Debug)]
pub(crate) struct RecentSections {
    kept: VecDeque<RecentSection>,
    most: usize,
    complete_from: u64,
}

impl Default for RecentSections {
    fn default() -> Self {
        Self::keeping(MOST)
    }
}

impl RecentSections {
    /// Creates an empty list that keeps this many sections.
    fn keeping(most: usize) -> Self {
        Self { kept: VecDeque::new(), most, complete_from: 0 }
    }

    /// Takes a section that ended; the oldest one gives way.
    #[inline]
    pub(crate) fn take(&mut self, span: &SpanRecord) {
        // Its calls are what the thread did.
        if span.class == Class::Asynchronous as u8 {
            return;
        }
        let Some(tag) = span.tag() else { return };
        if self.kept.len() >= self.most
            && let Some(oldest) = self.kept.pop_front()
        {
            self.complete_from = self.complete_from.max(oldest.end);
        }
        let SpanRecord { tgid: pid, tid, begin, end, exclusive, name, depth, .. } = *span;
        self.kept.push_back(RecentSection { pid, tid, begin, end, exclusive, name, tag, depth });
    }

    /// Returns the sections in the order in which they were taken.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecentSection> {
        self.kept.iter()
    }

    /// Returns the instant (ns) from which on no section is missing that was taken.
    #[must_use]
    pub(crate) const fn complete_from(&self) -> u64 {
        self.complete_from
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        layer::{Layer, Phase},
        stack::Class,
    };
    use proptest::prelude::*;
    use zerocopy::FromZeros as _;

    use super::*;

    fn span(begin: u64, end: u64) -> SpanRecord {
        let tag = Tag::new(Layer::Runtime, Phase::Execution).index();
        SpanRecord { tag, class: Class::Section as u8, begin, end, ..SpanRecord::new_zeroed() }
    }

    proptest! {
        #[test]
        fn every_section_after_the_instant_is_kept(
            sections in prop::collection::vec((0..50_u64, 0..50_u64), 0..40),
            most in 1..20_usize,
        ) {
            let mut recent = RecentSections::keeping(most);
            for &(begin, length) in &sections {
                recent.take(&span(begin, begin + length));
            }
            let kept: Vec<(u64, u64)> = recent.iter().map(|kept| (kept.begin, kept.end)).collect();
            let all: Vec<(u64, u64)> = sections.iter().map(|&(begin, length)| (begin, begin + length)).collect();
            prop_assert_eq!(&kept[..], &all[all.len().saturating_sub(most)..]);
            let missing = &all[..all.len() - kept.len()];
            prop_assert!(missing.iter().all(|&(_, end)| end <= recent.complete_from()));
            prop_assert_eq!(recent.complete_from() == 0, missing.iter().all(|&(_, end)| end == 0));
        }
    }

    #[test]
    fn sections_without_a_layer_are_none() {
        let mut recent = RecentSections::default();
        recent.take(&SpanRecord { tag: u8::MAX, ..span(1, 2) });
        assert_eq!(recent.iter().count(), 0);
    }
}
