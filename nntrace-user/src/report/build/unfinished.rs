//! Sections that had not ended, as rows.

use nntrace_common::layer::Tag;

use crate::{
    model::{
        findings::Findings,
        unfinished_sections::{OpenSections, UnfinishedSection},
    },
    report::snapshot::{Snapshot, UnfinishedRow},
};

/// Rows at most: a trace that was cut may have a million.
const MOST: usize = 100;

impl Snapshot {
    /// Adds the innermost section of each thread that is in one for long while the run goes on, the longest first.
    #[must_use]
    pub fn with_open_sections(self, found: &Findings<'_>, open: &OpenSections) -> Self {
        let mut sections = found.lasting_sections(open);
        // Those of a thread are together, the innermost is the last of them.
        sections.reverse();
        sections.dedup_by_key(|section| (section.pid, section.tid));
        sections.sort_by_key(UnfinishedSection::begin_ns);
        Self { unfinished: found.rows_of(sections), ..self }
    }
}

impl Findings<'_> {
    pub(super) fn unfinished_rows(&self) -> Vec<UnfinishedRow> {
        self.rows_of(self.unfinished_sections(std::iter::empty()))
    }

    fn rows_of(&self, sections: Vec<UnfinishedSection>) -> Vec<UnfinishedRow> {
        let (_, end) = self.window();
        let rows = sections.into_iter().take(MOST);
        let rows = rows.map(|section| UnfinishedRow {
            pid: section.pid,
            tid: section.tid,
            layer: section.tag.map(Tag::layer),
            phase: section.tag.map(Tag::phase),
            depth: section.depth,
            begin_ns: section.begin_ns(),
            open_ns: end.saturating_sub(section.begin_ns()),
            name: section.name,
        });
        rows.collect()
    }
}
