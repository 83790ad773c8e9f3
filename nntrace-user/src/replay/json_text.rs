//! Text of ftrace inside Chrome's JSON: the string of the key `systemTraceEvents` of its object.
//!
//! Source: the trace event format of Chrome ("JSON object format"); Perfetto's `traceconv json` writes it, too.

use std::{
    io::{self, BufRead, ErrorKind, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Key of the text.
const TEXT: &[u8] = b"systemTraceEvents";
/// Key of the other events.
const EVENTS: &[u8] = b"traceEvents";
/// Bytes of a string that are kept to compare it with a key: more than a key has.
const KEPT: usize = TEXT.len() + 1;

/// Events of a JSON beside the text, which are not read: whether there are any is known once a reader has come to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherEvents(Arc<AtomicBool>);

impl OtherEvents {
    /// Returns a note on them, if there are any.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.0.load(Ordering::Relaxed).then_some(
            "only the ftrace text in `systemTraceEvents` of this JSON is read; open it in ui.perfetto.dev to see the events in \
             `traceEvents`",
        )
    }
}

/// Reader of that text; it is empty where the file has none.
pub(crate) struct JsonText<R> {
    source: R,
    state: State,
    /// Objects and arrays that are open.
    depth: usize,
    /// First bytes of the last string outside of the text.
    string: Vec<u8>,
    /// First half of a pair of UTF-16, until the next escape sequence.
    half: Option<u16>,
    /// Bytes of a character that are read already.
    pending: Vec<u8>,
    events: OtherEvents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Text,
    After,
}

impl<R: BufRead> JsonText<R> {
    /// Creates a reader from the start of the file.
    pub(crate) fn new(source: R, events: OtherEvents) -> Self {
        let (string, pending) = (Vec::new(), Vec::new());
        Self { source, state: State::Before, depth: 0, string, half: None, pending, events }
    }

    /// Returns the next byte, which is still to be read.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.source.fill_buf() {
                // What is read so far of a string would be lost.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                buffer => return Ok(buffer?.first().copied()),
            }
        }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        self.source.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Returns the first byte of a value, which is still to be read.
    fn value(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.source.consume(1),
                byte => return Ok(byte),
            }
        }
    }

    /// Advances into the next string of the key of the text; false at the end of the file.
    fn find(&mut self) -> io::Result<bool> {
        while let Some(byte) = self.byte()? {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'"' => self.pass_string()?,
                // After a key of the outermost object: arguments of events may have any.
                b':' if self.depth == 1 => {
                    let value = self.value()?;
                    if self.string == TEXT && value == Some(b'"') {
                        self.source.consume(1);
                        return Ok(true);
                    }
                    if self.string == EVENTS && value == Some(b'[') {
                        self.source.consume(1);
                        self.depth += 1;
                        if self.value()? != Some(b']') {
                            self.events.0.store(true, Ordering::Relaxed);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Passes over a string, and keeps its first bytes.
    fn pass_string(&mut self) -> io::Result<()> {
        self.string.clear();
        while self.character()? {
            let room = KEPT - self.string.len();
            self.string.extend(self.pending.drain(..).take(room));
        }
        Ok(())
    }

    /// Appends the next character of a string to the pending bytes; false at the end of the string.
    fn character(&mut self) -> io::Result<bool> {
        match self.byte()? {
            None | Some(b'"') => return Ok(false),
            Some(b'\\') => self.escape()?,
            Some(byte) => self.pending.push(byte),
        }
        Ok(true)
    }

    /// Appends the character of an escape sequence, whose backslash is read, to the pending bytes. The first half of a pair waits for
    /// the next sequence.
    fn escape(&mut self) -> io::Result<()> {
        let half = self.half.take();
        match self.byte()? {
            Some(b'u') => {
                let unit = self.unit()?;
                if (0xd800..0xdc00).contains(&unit) && self.peek()? == Some(b'\\') {
                    self.half = Some(unit);
                    self.units(half);
                } else {
                    self.units(half.into_iter().chain([unit]));
                }
            }
            byte => {
                self.units(half);
                self.pending.extend(byte.map(|byte| match byte {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => other,
                }));
            }
        }
        Ok(())
    }

    /// Reads four hexadecimal digits: a unit of UTF-16.
    fn unit(&mut self) -> io::Result<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.byte()?.and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.unwrap_or(0) as u16;
        }
        Ok(unit)
    }

    /// Appends the characters of units of UTF-16 to the pending bytes.
    fn units(&mut self, units: impl IntoIterator<Item = u16>) {
        for letter in char::decode_utf16(units) {
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.pending.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
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
            match self.state {
                State::Before => self.state = if self.find()? { State::Text } else { State::After },
                State::Text => {
                    if !self.character()? {
                        self.state = State::After;
                        // Other events may follow; the format allows one text only.
                        while self.find()? {
                            self.pass_string()?;
                        }
                    }
                }
                State::After => break,
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text, and whether other events are noted.
    fn read(json: &str) -> (String, bool) {
        let (mut text, events) = (String::new(), OtherEvents::default());
        JsonText::new(json.as_bytes(), events.clone()).read_to_string(&mut text).unwrap();
        (text, events.note().is_some())
    }

    #[test]
    fn the_text_is_unescaped() {
        let json = r#"{"traceEvents":[{"name":"\"systemTraceEvents\":\"no\""}], "systemTraceEvents" : "a\n\tb \"c\" \u00e9\\d","x":"y"}"#;
        assert_eq!(read(json).0, "a\n\tb \"c\" \u{e9}\\d");
        assert_eq!(read(r#"{"traceEvents":[]}"#).0, "");
        assert_eq!(read(r#"{"systemTraceEvents":{"a":1}}"#).0, "");
        assert_eq!(read(r#"{"systemTraceEvents":"cut \u00"#).0, "cut \0");
        assert_eq!(read(r#"{"systemTraceEvents":"cut\"#).0, "cut");
    }

    #[test]
    fn pairs_of_escape_sequences_are_one_character() {
        let text = |escaped: &str| read(&format!(r#"{{"systemTraceEvents":"{escaped}"}}"#)).0;
        assert_eq!(text(r"a\ud83d\ude00b\uD83D\uDE80"), "a\u{1f600}b\u{1f680}");
        assert_eq!(text(r"\ud83d"), "\u{fffd}");
        assert_eq!(text(r"\ude00x"), "\u{fffd}x");
        assert_eq!(text(r"\ud83d\n"), "\u{fffd}\n");
        assert_eq!(text(r"\ud83d\u0041"), "\u{fffd}A");
        assert_eq!(text(r"\ud83d\ud83d\ud83d\ude00"), "\u{fffd}\u{fffd}\u{1f600}");
    }

    #[test]
    fn the_key_is_one_of_the_outermost_object() {
        let args = r#"{"traceEvents":[{"args":{"systemTraceEvents":"nope"}}],"systemTraceEvents":"real"}"#;
        assert_eq!(read(args).0, "real");
        assert_eq!(read(r#"{"a":"systemTraceEvents","b":"no","systemTraceEvents":"real"}"#).0, "real");
        assert_eq!(read(r#"{"a":{"systemTraceEvents":"no"}}"#).0, "");
        assert_eq!(read(r#"{"system\u0054raceEvents":"real"}"#).0, "real");
        assert_eq!(read(r#"{"systemTraceEvents2":"no"}"#).0, "");
        assert_eq!(read(r#"{"systemTraceEvents":"first","systemTraceEvents":"second"}"#).0, "first");
    }

    #[test]
    fn events_beside_the_text_are_noted_wherever_they_are() {
        let before = r#"{"traceEvents":[{"ph":"X"}],"systemTraceEvents":"text"}"#;
        let after = r#"{"systemTraceEvents":"text","traceEvents" : [ {"ph":"X"}]}"#;
        for (json, is_noted) in [
            (before, true),
            (after, true),
            (r#"{"traceEvents":[ ],"systemTraceEvents":"text"}"#, false),
            (r#"{"systemTraceEvents":"text","other":{"traceEvents":[1]}}"#, false),
        ] {
            assert_eq!(read(json), ("text".to_owned(), is_noted), "{json}");
        }
    }
}
