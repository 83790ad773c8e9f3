//! Folded stacks, as programs that draw flame graphs read them: a stack a line, and the exclusive time of its innermost
//! frame, ns.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{model::Findings, report::terminal_text::clean};

/// Frame of a function without a name.
const NAMELESS: &str = "(no name)";

/// Renders the stacks of all processes, in the order of their text: the name of the process, the layers and phases from the
/// outermost in, and the function.
#[must_use]
pub fn render(findings: &Findings<'_>) -> String {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for function in findings.stacked_functions() {
        let mut stack = frame(&findings.process_name(function.pid));
        for tag in &function.path {
            // Writing to a string cannot fail, here and below.
            let _ = write!(stack, ";{tag}");
        }
        if let Some(name) = function.name {
            let _ = write!(stack, ";{}", innermost(frame(&findings.marks.names.text(name))));
        }
        let sum = stacks.entry(stack).or_default();
        *sum = sum.saturating_add(function.total.exclusive);
    }
    let mut text = String::new();
    for (stack, exclusive) in stacks.iter().filter(|(_, exclusive)| **exclusive > 0) {
        let _ = writeln!(text, "{stack} {exclusive}");
    }
    text
}

/// Returns a name as a frame: clean, and without what separates frames.
fn frame(name: &str) -> String {
    if name.is_empty() { NAMELESS.into() } else { clean(name).replace(';', "\\x3b") }
}

/// Returns the last frame of a stack: a number after a space would be read as the value of another run.
fn innermost(frame: String) -> String {
    match frame.rsplit_once(' ') {
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            format!("{before}\\x20{number}")
        }
        _ => frame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_frame() {
        for (name, expected) in [
            ("conv2d", "conv2d"),
            ("a;b c", "a\\x3bb c"),
            ("line\nline", "line\\nline"),
            ("layer 12", "layer\\x2012"),
            ("layer 1.5", "layer\\x201.5"),
            ("layer 12b", "layer 12b"),
            ("12", "12"),
            ("ends ", "ends\\x20"),
            ("", "(no name)"),
        ] {
            assert_eq!(innermost(frame(name)), expected);
        }
    }
}
