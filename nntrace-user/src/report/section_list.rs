//! Every section, one a line: in order of time, or as a tree of what caused what.

use std::{collections::BTreeMap, fmt::Write as _};

use nntrace_common::{layer::Tag, stamp::Stamp};

use super::{
    number_format,
    section_lines::{self, NOT_ENDED},
    terminal_text::{Text, line},
};
use crate::model::{
    Marks,
    causality::{Edge, graph::Node},
    marks::OpenSection,
    section::Section,
    section_filter::{Hidden, SectionFilter},
    unfinished_sections::UnfinishedSection,
};

/// Sections in the order they began. Those that the filter leaves out are counted.
#[must_use]
pub fn list(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let sections = Sections::new(marks, filter);
    let mut text = Text::new();
    for node in marks.causality.graph.nodes() {
        if sections.shows(node, hidden) {
            sections.write(&mut text, node, 0);
        }
    }
    text
}

/// Lists the sections as [`list`] does, but one thread after the other.
#[must_use]
pub fn list_by_thread(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let sections = Sections::new(marks, filter);
    let mut threads: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
    for node in marks.causality.graph.nodes() {
        if sections.shows(node, hidden) {
            threads.entry(node.tid).or_default().push(node);
        }
    }
    let mut text = Text::new();
    for (tid, nodes) in threads {
        line!(text, "thread {tid}");
        for node in nodes {
            sections.write(&mut text, node, 0);
        }
    }
    text
}

/// Sections below what caused them: what a section contains, hands over, or whose thread it creates.
/// Below one that is left out are those that it would have around it, at its place.
#[must_use]
pub fn tree(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let sections = Sections::new(marks, filter);
    let graph = &marks.causality.graph;
    let children = graph.children();
    let mut text = Text::new();
    // Not by recursion: causes may be as many as there are sections.
    let mut open: Vec<(u32, usize)> = below(&children, None).map(|number| (number, 0)).collect();
    while let Some((number, depth)) = open.pop() {
        let node = graph.nodes().get(number as usize).filter(|node| sections.shows(node, hidden));
        if let Some(node) = node {
            sections.write(&mut text, node, depth);
        }
        let depth = depth + usize::from(node.is_some());
        open.extend(below(&children, Some(number)).map(|number| (number, depth)));
    }
    text
}

/// The last one first.
fn below(children: &BTreeMap<Option<u32>, Vec<u32>>, parent: Option<u32>) -> impl Iterator<Item = u32> {
    children.get(&parent).into_iter().flatten().rev().copied()
}

/// Returns a line of JSON for each section of a trace, in the order they began: those that ended, and those that had not. They
/// lack the name that only the ancestry of a thread gives.
///
/// # Errors
/// When a name cannot be written as JSON.
pub fn json_lines(
    unfinished: &[UnfinishedSection],
    mut ended: Vec<Section<'_>>,
    filter: &SectionFilter,
    hidden: &mut Hidden,
) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    ended.sort_by_key(|section| (section.begin_stamp(), section.tid, section.depth));
    let mut ended = ended.into_iter().peekable();
    let mut unfinished: Vec<&UnfinishedSection> = unfinished.iter().collect();
    unfinished.sort_by_key(|section| section.begin);
    for open in unfinished {
        while let Some(section) = ended.next_if(|section| section.begin_stamp() <= open.begin) {
            section_lines::json(&mut lines, &section, None);
        }
        if filter.shows_unfinished(open.tid, open.begin_ns(), open.tag, &open.name) {
            section_lines::unfinished_json(&mut lines, open, None)?;
        } else {
            hidden.add(0);
        }
    }
    ended.for_each(|section| section_lines::json(&mut lines, &section, None));
    Ok(lines)
}

/// Sections of a graph, and the filter that they are shown by.
struct Sections<'a> {
    marks: &'a Marks,
    filter: &'a SectionFilter,
    /// Sections that have not ended, by thread, begin and place among those of one instant.
    unfinished: BTreeMap<(u32, Stamp, usize), &'a OpenSection>,
}

impl<'a> Sections<'a> {
    fn new(marks: &'a Marks, filter: &'a SectionFilter) -> Self {
        let unfinished = (0..).zip(&marks.open).map(|(place, open)| ((open.tid, open.begin, place), open));
        Self { marks, filter, unfinished: unfinished.collect() }
    }

    /// Returns layer and phase of a section; of one that has not ended, as it began. Nodes begin with the window at the earliest.
    fn tag(&self, node: &Node) -> Option<Tag> {
        if node.end.is_some() {
            return node.tag;
        }
        let until = (node.tid, node.begin, usize::MAX);
        let of_thread = self.unfinished.range(..=until).rev().map(|(_, open)| *open);
        let mut of_thread = of_thread.take_while(|open| open.tid == node.tid);
        of_thread.find(|open| open.name == node.name).and_then(|open| open.tag)
    }

    fn shows(&self, node: &Node, hidden: &mut Hidden) -> bool {
        let Self { marks, filter, .. } = self;
        if node.ended_before {
            return false;
        }
        if filter.shows_all() {
            return true;
        }
        let name = marks.names.text(node.name);
        let shown = match (node.tag, node.end) {
            (Some(tag), Some(end)) => {
                filter.shows_times(node.begin.time, end) && filter.shows_place(node.tid, tag, &name)
            }
            _ => filter.shows_unfinished(node.tid, node.begin.time, self.tag(node), &name),
        };
        if !shown {
            hidden.add(node.end.map_or(0, |end| end - node.begin.time));
        }
        shown
    }

    fn write(&self, text: &mut Text, node: &Node, depth: usize) {
        let marks = self.marks;
        let duration = node
            .end
            .map_or_else(|| NOT_ENDED.into(), |end| number_format::duration_ns(end - node.begin.time));
        let tag = self.tag(node).map_or_else(String::new, |tag| tag.to_string());
        let (seconds, rest) = (node.begin.time / 1_000_000_000, node.begin.time % 1_000_000_000);
        let mut attributes = String::new();
        for (key, value) in marks.causality.labels(node) {
            // Writing to a string cannot fail.
            let _ = write!(attributes, "  {key} {value}");
        }
        let cause = match node.parent {
            Some((_, Edge::HandedOver)) => "  (handed over)",
            Some((_, Edge::Created)) => "  (thread created)",
            _ => "",
        };
        line!(
            text,
            "{seconds:>7}.{rest:09} {:>7} {duration:>9} {tag:<7}{:indent$}{}{attributes}{cause}",
            node.tid,
            "",
            marks.names.text(node.name),
            indent = 2 * depth + 1,
        );
    }
}
