//! Sections that had not ended, as rows.

use nntrace_common::layer::Tag;

use crate::{model::findings::Findings, report::snapshot::UnfinishedRow};

/// Rows at most: a trace that was cut may have a million.
const MOST: usize = 100;

impl Findings<'_> {
    pub(super) fn unfinished_rows(&self) -> Vec<UnfinishedRow> {
        let (_, end) = self.window();
        let rows = self.unfinished_sections(std::iter::empty()).into_iter().take(MOST);
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
