//! Sections and their causes as a graph in the language of Graphviz: `dot -Tsvg graph.dot`.

use std::fmt::Write as _;

use crate::{
    model::{
        Findings, Marks,
        causality::{Edge, graph::Node},
    },
    report::{number_format, terminal_text::clean},
};

/// Renders the graph that was kept; see [`crate::model::causality::Questions::graph`].
#[must_use]
pub fn render(findings: &Findings<'_>) -> String {
    let marks = findings.marks;
    let graph = &marks.causality.graph;
    let mut text = String::from("digraph sections {\n  rankdir=LR;\n  node [shape=box];\n");
    // Writing to a string cannot fail, here and below.
    let is_shown = |number: u32| graph.nodes().get(number as usize).is_some_and(|node| !node.ended_before);
    for (node, number) in graph.nodes().iter().zip(0_u32..).filter(|(_, number)| is_shown(*number)) {
        let _ = writeln!(text, "  s{number} [label=\"{}\"];", label(marks, node));
    }
    for (from, to, edge) in graph.edges().iter().filter(|(from, to, _)| is_shown(*from) && is_shown(*to)) {
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

/// Returns the lines of a label, in the syntax of the language.
fn label(marks: &Marks, node: &Node) -> String {
    let mut lines = vec![marks.names.text(node.name)];
    lines.extend(node.tag.map(|tag| tag.to_string()));
    if let Some(last) = lines.last_mut() {
        let _ = match node.end {
            Some(end) => write!(last, " {}", number_format::duration_ns(end - node.begin.time)),
            None => write!(last, " has not ended"),
        };
    }
    lines.push(format!("thread {}", node.tid));
    lines.extend(marks.causality.labels(node).map(|(key, value)| format!("{key} {value}")));
    lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\\n")
}

/// Escapes a line of a label: clean, and without the escape sequences and the HTML entities that Graphviz interprets.
fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_nothing_else() {
        assert_eq!(escaped("conv2d"), "conv2d");
        assert_eq!(escaped("\\N \"a\" &lt; \x1b[2J\n"), r#"\\N \"a\" &amp;lt; \\x1b[2J\\n"#);
    }
}
