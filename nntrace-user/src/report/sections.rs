//! Every section, one a line: in order of time, or as a tree of what caused what.

use std::{collections::BTreeMap, fmt::Write as _};

use super::human;
use crate::model::{
    Marks,
    causality::{Edge, graph::Node},
};

/// Sections in the order they began.
#[must_use]
pub fn list(marks: &Marks) -> String {
    let mut text = String::new();
    for node in marks.causality.graph.nodes() {
        line(&mut text, marks, node, 0);
    }
    text
}

/// Sections below what caused them: what a section contains, hands over, or whose thread it creates.
#[must_use]
pub fn tree(marks: &Marks) -> String {
    let graph = &marks.causality.graph;
    let children = graph.children();
    let mut text = String::new();
    // Not by recursion: causes may be as many as there are sections.
    let mut open: Vec<(u32, usize)> = below(&children, None).map(|number| (number, 0)).collect();
    while let Some((number, depth)) = open.pop() {
        if let Some(node) = graph.nodes().get(number as usize) {
            line(&mut text, marks, node, depth);
        }
        open.extend(below(&children, Some(number)).map(|number| (number, depth + 1)));
    }
    text
}

/// The last one first.
fn below(children: &BTreeMap<Option<u32>, Vec<u32>>, parent: Option<u32>) -> impl Iterator<Item = u32> {
    children.get(&parent).into_iter().flatten().rev().copied()
}

fn line(text: &mut String, marks: &Marks, node: &Node, depth: usize) {
    let duration = node.end.map_or_else(|| "not ended".into(), |end| human::duration_ns(end - node.begin));
    let tag = node.tag.map_or_else(String::new, |tag| tag.to_string());
    let (seconds, rest) = (node.begin / 1_000_000_000, node.begin % 1_000_000_000);
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        text,
        "{seconds:>7}.{rest:09} {:>7} {duration:>9} {tag:<7}{:indent$}{}",
        node.tid,
        "",
        marks.names.text(node.name),
        indent = 2 * depth + 1,
    );
    for (key, value) in marks.causality.said(node) {
        let _ = write!(text, "  {key} {value}");
    }
    let _ = match node.parent {
        Some((_, Edge::HandedOver)) => writeln!(text, "  (handed over)"),
        Some((_, Edge::Created)) => writeln!(text, "  (thread created)"),
        _ => writeln!(text),
    };
}
