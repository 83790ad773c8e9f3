//! Text of ftrace inside Chrome's JSON: the string of the key `systemTraceEvents`.
//!
//! Source: the trace event format of Chrome ("JSON object format"); Perfetto's `traceconv json` writes it, too.

use std::io::{self, BufRead, Read};

/// Key of the text.
const KEY: &[u8] = b"\"systemTraceEvents\"";

/// Reader of that text; it is empty where the file has none.
pub(crate) struct JsonText<R> {
    source: R,
    state: State,
    /// Bytes of a character that are read already.
    pending: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the end of the key, after this many bytes of it; whether the byte before was a backslash.
    Search {
        matched: usize,
        is_escaped: bool,
    },
    /// After the key, before its string.
    Key,
    Text,
    End,
}

impl<R: BufRead> JsonText<R> {
    /// Creates a reader from the start of the file.
    pub(crate) fn new(source: R) -> Self {
        Self { source, state: State::Search { matched: 0, is_escaped: false }, pending: Vec::new() }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.source.fill_buf()?.first().copied();
        self.source.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Advances to the text; false where there is none.
    fn find(&mut self) -> io::Result<bool> {
        loop {
            match self.state {
                State::Text => return Ok(true),
                State::End => return Ok(false),
                State::Search { .. } | State::Key => {}
            }
            let Some(byte) = self.byte()? else {
                self.state = State::End;
                continue;
            };
            self.state = match (self.state, byte) {
                (State::Key, b':' | b' ' | b'\t' | b'\r' | b'\n') => State::Key,
                (State::Key, b'"') => State::Text,
                (State::Search { matched, .. }, _) if byte == KEY[matched] && matched > 0 => {
                    if matched + 1 == KEY.len() {
                        State::Key
                    } else {
                        State::Search { matched: matched + 1, is_escaped: false }
                    }
                }
                (State::Search { is_escaped: false, .. }, b'"') => {
                    State::Search { matched: 1, is_escaped: false }
                }
                (State::Search { is_escaped, .. }, b'\\') => {
                    State::Search { matched: 0, is_escaped: !is_escaped }
                }
                _ => State::Search { matched: 0, is_escaped: false },
            };
        }
    }

    /// Appends the character of an escape sequence to the pending bytes.
    fn escape(&mut self) -> io::Result<()> {
        let byte = match self.byte()? {
            None => {
                self.state = State::End;
                return Ok(());
            }
            Some(b'u') => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.byte()?.and_then(|byte| char::from(byte).to_digit(16));
                    code = code * 16 + digit.unwrap_or(0);
                }
                // Halves of pairs are of no use alone, and the names of marks have none.
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                self.pending.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(other) => other,
        };
        self.pending.push(byte);
        Ok(())
    }
}

impl<R: BufRead> Read for JsonText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            if !self.pending.is_empty() {
                let length = self.pending.len().min(buffer.len() - count);
                buffer[count..count + length].copy_from_slice(&self.pending[..length]);
                self.pending.drain(..length);
                count += length;
                continue;
            }
            if !self.find()? {
                break;
            }
            match self.byte()? {
                None | Some(b'"') => self.state = State::End,
                Some(b'\\') => self.escape()?,
                Some(byte) => self.pending.push(byte),
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let mut text = String::new();
        JsonText::new(json.as_bytes()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_text_is_unescaped() {
        let json = r#"{"traceEvents":[{"name":"\"systemTraceEvents\":\"no\""}], "systemTraceEvents" : "a\n\tb \"c\" \u00e9\\d","x":"y"}"#;
        assert_eq!(text(json), "a\n\tb \"c\" \u{e9}\\d");
        assert_eq!(text(r#"{"traceEvents":[]}"#), "");
        assert_eq!(text(r#"{"systemTraceEvents":{"a":1}}"#), "");
        assert_eq!(text(r#"{"systemTraceEvents":"cut \u00"#), "cut \0");
    }
}
