//! Every section, one a line: in order of time, or as a tree of what caused what.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    number_format, section_lines,
    terminal_text::{Text, line, to_json},
};
use crate::model::{
    Marks,
    causality::{Edge, graph::Node},
    section::Section,
    section_filter::{Hidden, SectionFilter},
};

/// Sections in the order they began. Those that the filter leaves out are counted.
#[must_use]
pub fn list(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let mut text = Text::new();
    for node in marks.causality.graph.nodes() {
        if shows(filter, marks, node, hidden) {
            section(&mut text, marks, node, 0);
        }
    }
    text
}

/// The same, one thread after the other.
#[must_use]
pub fn list_by_thread(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let mut threads: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
    for node in marks.causality.graph.nodes() {
        if shows(filter, marks, node, hidden) {
            threads.entry(node.tid).or_default().push(node);
        }
    }
    let mut text = Text::new();
    for (tid, nodes) in threads {
        line!(text, "thread {tid}");
        for node in nodes {
            section(&mut text, marks, node, 0);
        }
    }
    text
}

/// Whether a section is shown. One that has not ended has no layer, phase or duration yet.
fn shows(filter: &SectionFilter, marks: &Marks, node: &Node, hidden: &mut Hidden) -> bool {
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
        _ => filter.shows_unended(node.tid, &name),
    };
    if !shown {
        hidden.add(node.end.map_or(0, |end| end - node.begin.time));
    }
    shown
}

/// Sections below what caused them: what a section contains, hands over, or whose thread it creates.
/// Below one that is left out are those that it would have around it, at its place.
#[must_use]
pub fn tree(marks: &Marks, filter: &SectionFilter, hidden: &mut Hidden) -> Text {
    let graph = &marks.causality.graph;
    let children = graph.children();
    let mut text = Text::new();
    // Not by recursion: causes may be as many as there are sections.
    let mut open: Vec<(u32, usize)> = below(&children, None).map(|number| (number, 0)).collect();
    while let Some((number, depth)) = open.pop() {
        let node = graph.nodes().get(number as usize).filter(|node| shows(filter, marks, node, hidden));
        if let Some(node) = node {
            section(&mut text, marks, node, depth);
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

/// Returns a line of JSON for each section of a trace, in the order they began: those that ended as [`section_lines::json`]
/// writes them, without the name that only the ancestry of a thread gives; and, with null for what only their end shows, those
/// that had not ended.
///
/// # Errors
/// When a name cannot be written as JSON.
pub fn json_lines(
    marks: &Marks,
    mut ended: Vec<Section<'_>>,
    filter: &SectionFilter,
    hidden: &mut Hidden,
) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    ended.sort_by_key(|section| (section.begin_stamp(), section.tid, section.depth));
    let mut ended = ended.into_iter().peekable();
    for node in marks.causality.graph.nodes().iter().filter(|node| node.end.is_none()) {
        while let Some(section) = ended.next_if(|section| section.begin_stamp() <= node.begin) {
            section_lines::json(&mut lines, &section, None);
        }
        if !shows(filter, marks, node, hidden) {
            continue;
        }
        lines.extend(to_json(&serde_json::json!({
            "pid": null,
            "tid": node.tid,
            "thread": null,
            "begin_ns": node.begin.time,
            "end_ns": null,
            "duration_ns": null,
            "own_ns": null,
            "exclusive_ns": null,
            "depth": null,
            "layer": null,
            "phase": null,
            "class": null,
            "name": marks.names.text(node.name),
            "attributes": {},
        }))?);
    }
    ended.for_each(|section| section_lines::json(&mut lines, &section, None));
    Ok(lines)
}

fn section(text: &mut Text, marks: &Marks, node: &Node, depth: usize) {
    let duration =
        node.end.map_or_else(|| "not ended".into(), |end| number_format::duration_ns(end - node.begin.time));
    let tag = node.tag.map_or_else(String::new, |tag| tag.to_string());
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
