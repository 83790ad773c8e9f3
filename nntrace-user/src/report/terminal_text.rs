//! Text for people, made so that it can be shown on any terminal.
//!
//! Names come from programs under test and from files: one that holds an escape sequence could write into the terminal of
//! whoever looks, root's among them. All text for people is therefore a [`Text`], in which no character acts; what
//! has a syntax of its own (CSV, SVG, DOT) is made of `clean` names, and JSON of [`to_json`].

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io,
    ops::{Add, AddAssign, Deref},
};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Lines of text for people, without a character that acts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a line. Characters that act are shown as `clean` shows them, line ends too: what is one line here is one
    /// line to people.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        let begin = self.0.len();
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(line);
        if let Cow::Owned(cleaned) = clean(&self.0[begin..]) {
            self.0.truncate(begin);
            self.0.push_str(&cleaned);
        }
        self.0.push('\n');
    }
}

/// Adds a line to a [`Text`], as `writeln!` does.
macro_rules! line {
    ($text:expr, $($format:tt)*) => {
        $text.line(format_args!($($format)*))
    };
}
pub(crate) use line;

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl Add<&Self> for Text {
    type Output = Self;

    fn add(mut self, other: &Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign<&Self> for Text {
    fn add_assign(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }
}

/// Text in which no character acts: those that do are shown as in source code, `\n`, `\x1b`, `\u{9b}`, `\u{202e}`.
/// A backslash stands for itself.
#[must_use]
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    // Nearly all text is plain.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    if text.bytes().all(is_plain) || !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        let _ = match character {
            '\n' => cleaned.write_str("\\n"),
            '\r' => cleaned.write_str("\\r"),
            '\t' => cleaned.write_str("\\t"),
            '\0'..=' ' | '\x7f' if acts(character) => write!(cleaned, "\\x{:02x}", u32::from(character)),
            _ if acts(character) => write!(cleaned, "\\u{{{:x}}}", u32::from(character)),
            _ => cleaned.write_char(character),
        };
    }
    Cow::Owned(cleaned)
}

/// Whether a character does something to a terminal, or to the order and the lines of what stands around it, instead of
/// standing there: controls (C0, DEL, C1), directions, and the line ends of Unicode.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{2028}' | '\u{2029}')
}

/// A value as a line of JSON. The same data as ever; characters that act are written by their numbers, those too that JSON
/// would let through (DEL, C1, directions).
///
/// # Errors
/// When it cannot be written as JSON.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Inert))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// JSON in which no character acts.
struct Inert;

impl Formatter for Inert {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        // All of them are single units of UTF-16.
        while let Some((place, character)) = rest.char_indices().find(|(_, character)| acts(*character)) {
            CompactFormatter.write_string_fragment(writer, &rest[..place])?;
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = &rest[place + character.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_is_shown_and_what_stands_there_stays() {
        for (text, expected) in [
            ("", ""),
            ("conv2d \\x1b ~", "conv2d \\x1b ~"),
            ("推論 é 👩‍🔬", "推論 é 👩‍🔬"),
            ("a\x1b]52;c;bWFsaWNl\x07b", "a\\x1b]52;c;bWFsaWNl\\x07b"),
            ("a\r\n\tb\0\x7f", "a\\r\\n\\tb\\x00\\x7f"),
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            ("\u{202e}gnp\u{2066}\u{200f}\u{61c}", "\\u{202e}gnp\\u{2066}\\u{200f}\\u{61c}"),
            ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn a_line_is_one_line() {
        let mut text = Text::new();
        line!(text, "{:<8}|{}", "a\nb", "\x1b[2J");
        line!(text, "plain");
        assert_eq!(&*text, "a\\nb     |\\x1b[2J\nplain\n");
    }

    proptest! {
        #[test]
        fn nothing_that_is_cleaned_acts(text in any::<String>()) {
            prop_assert!(!clean(&text).contains(acts));
            let cleaned = clean(&text);
            prop_assert_eq!(clean(&cleaned), &*cleaned);
        }

        #[test]
        fn json_has_the_same_data(text in "[\\x00-\\x7f\u{80}-\u{9f}\u{202a}-\u{202e}\u{2028}é\"\\\\]*") {
            let json = String::from_utf8(to_json(&text).unwrap()).unwrap();
            prop_assert!(!json.trim_end_matches('\n').contains(acts), "{}", json);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
