//! Every section, one a line: in order of time, or as a tree of what caused what.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    number_format,
    terminal_text::{Text, line},
};
use crate::model::{
    Marks,
    causality::{Edge, graph::Node},
};

/// Sections in the order they began.
#[must_use]
pub fn list(marks: &Marks) -> Text {
    let mut text = Text::new();
    for node in marks.causality.graph.nodes() {
        section(&mut text, marks, node, 0);
    }
    text
}

/// Sections below what caused them: what a section contains, hands over, or whose thread it creates.
#[must_use]
pub fn tree(marks: &Marks) -> Text {
    let graph = &marks.causality.graph;
    let children = graph.children();
    let mut text = Text::new();
    // Not by recursion: causes may be as many as there are sections.
    let mut open: Vec<(u32, usize)> = below(&children, None).map(|number| (number, 0)).collect();
    while let Some((number, depth)) = open.pop() {
        if let Some(node) = graph.nodes().get(number as usize) {
            section(&mut text, marks, node, depth);
        }
        open.extend(below(&children, Some(number)).map(|number| (number, depth + 1)));
    }
    text
}

/// The last one first.
fn below(children: &BTreeMap<Option<u32>, Vec<u32>>, parent: Option<u32>) -> impl Iterator<Item = u32> {
    children.get(&parent).into_iter().flatten().rev().copied()
}

fn section(text: &mut Text, marks: &Marks, node: &Node, depth: usize) {
    let duration =
        node.end.map_or_else(|| "not ended".into(), |end| number_format::duration_ns(end - node.begin));
    let tag = node.tag.map_or_else(String::new, |tag| tag.to_string());
    let (seconds, rest) = (node.begin / 1_000_000_000, node.begin % 1_000_000_000);
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
