//! Errors and notes for people, on stderr.

use std::{
    fmt,
    io::{self, Write as _},
};

use nntrace_user::report::terminal_text::Text;

/// Prints an error or a note to stderr, in a line of its own, for people: see [`Text`].
pub fn message(message: impl fmt::Display) {
    messages([message]);
}

/// Prints a message of several lines to stderr, as [`message`] does with one.
pub fn messages(lines: impl IntoIterator<Item = impl fmt::Display>) {
    let mut text = Text::new();
    for (number, line) in lines.into_iter().enumerate() {
        text.line(format_args!("{}{line}", if number == 0 { "nntrace-bpf: " } else { "" }));
    }
    // There is nobody left to report a failure to.
    let _ = io::stderr().write_all(text.as_bytes());
}
