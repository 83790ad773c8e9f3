//! Sections and their causes as a graph in the language of Graphviz: `dot -Tsvg graph.dot`.

use std::fmt::Write as _;

use crate::{
    model::{
        Marks,
        causality::{Edge, graph::Node},
    },
    report::human,
};

/// The graph of what was kept; see [`crate::model::causality::Questions::graph`].
#[must_use]
pub fn render(marks: &Marks) -> String {
    let graph = &marks.causality.graph;
    let mut text = String::from("digraph sections {\n  rankdir=LR;\n  node [shape=box];\n");
    // Writing to a string cannot fail, here and below.
    for (node, number) in graph.nodes().iter().zip(0_u32..) {
        let _ = writeln!(text, "  s{number} [label=\"{}\"];", escaped(&label(marks, node)));
    }
    for (from, to, edge) in graph.edges() {
        let style = match edge {
            Edge::Explicit | Edge::Nested => "",
            Edge::HandedOver => " [style=bold,label=\"hand-over\"]",
            Edge::Created => " [style=dashed,label=\"create\"]",
        };
        let _ = writeln!(text, "  s{from} -> s{to}{style};");
    }
    text.push_str("}\n");
    text
}

fn label(marks: &Marks, node: &Node) -> String {
    let mut label = marks.names.text(node.name);
    if let Some(tag) = node.tag {
        let _ = write!(label, "\n{tag}");
    }
    let _ = match node.end {
        Some(end) => write!(label, " {}", human::duration_ns(end - node.begin)),
        None => write!(label, " has not ended"),
    };
    let _ = write!(label, "\nthread {}", node.tid);
    for (key, value) in marks.causality.said(node) {
        let _ = write!(label, "\n{key} {value}");
    }
    label
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
