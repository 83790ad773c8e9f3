//! Lines of a reader, without an allocation or a copy for each: chunks of whole lines, whose lines are found later, and
//! perhaps elsewhere.

use std::io::{self, ErrorKind, Read};

use memchr::{memchr, memrchr};

/// Bytes of a line that are kept; longer ones are truncated.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Text of whole lines.
#[derive(Default)]
pub struct Text {
    /// Room that is used again for the next chunk, so that it is cleared only once.
    room: Vec<u8>,
    /// End of the text in it.
    end: usize,
}

impl Text {
    /// Returns the lines, without their ends (`\n`, and any `\r` before it), truncated to their first [`LONGEST_LINE`]
    /// bytes.
    #[inline]
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            Some(trim(line))
        })
    }

    /// Returns all of it.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.end]
    }

    /// Reads once, at most this many bytes; returns how many.
    fn read(&mut self, reader: &mut impl Read, most: usize) -> io::Result<usize> {
        let needed = self.end + most;
        if self.room.len() < needed {
            self.room.resize(needed, 0);
        }
        loop {
            match reader.read(&mut self.room[self.end..needed]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => {
                    self.end += *count.as_ref().unwrap_or(&0);
                    return count;
                }
            }
        }
    }
}

/// Splitter of a reader's text into chunks of whole lines.
pub struct Chunks<R> {
    reader: R,
    /// Bytes read at once.
    size: usize,
    /// Begin of the line that the last chunk broke off before.
    rest: Vec<u8>,
    /// Whether the reader has no more.
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> Chunks<R> {
    /// Reads from the reader's current position, this many bytes at once.
    pub fn new(reader: R, size: usize) -> Self {
        Self { reader, size: size.max(1), rest: Vec::new(), ended: false, error: None }
    }

    /// Replaces `text` by the next lines; false at the end. Memory stays within what is read at once and a line.
    ///
    /// # Errors
    /// When the reader fails: after everything it had provided, including a line without an end. Then there is
    /// nothing more.
    pub fn fill(&mut self, text: &mut Text) -> io::Result<bool> {
        text.end = self.rest.len();
        if text.room.len() < text.end {
            text.room.resize(text.end, 0);
        }
        text.room[..text.end].copy_from_slice(&self.rest);
        self.rest.clear();
        while !self.ended {
            if text.end > LONGEST_LINE {
                // One byte more than the kept ones stays, to show that the line was longer.
                text.end = LONGEST_LINE + 1;
            }
            let searched = text.end;
            match text.read(&mut self.reader, self.size) {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    if let Some(at) = memrchr(b'\n', &text.bytes()[searched..]) {
                        let end = searched + at + 1;
                        self.rest.extend_from_slice(&text.bytes()[end..]);
                        text.end = end;
                        return Ok(true);
                    }
                }
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
        }
        if text.end > 0 { Ok(true) } else { self.error.take().map_or(Ok(false), Err) }
    }
}

/// Removes `\r`, or the bytes beyond the limit.
#[inline]
fn trim(line: &[u8]) -> &[u8] {
    if line.len() > LONGEST_LINE {
        return &line[..LONGEST_LINE];
    }
    let mut line = line;
    // Traces that came through a shell on Windows have two.
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reader of bytes in parts of these sizes, with interruptions in between, and then perhaps an error.
    struct Parts<'a> {
        bytes: &'a [u8],
        sizes: Vec<usize>,
        turn: usize,
        fails: bool,
    }

    impl Read for Parts<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.turn += 1;
            if self.turn.is_multiple_of(5) {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.bytes.is_empty() && self.fails {
                self.fails = false;
                return Err(io::Error::other("damaged"));
            }
            let size = self.sizes[self.turn % self.sizes.len()].min(buffer.len()).min(self.bytes.len());
            let (now, later) = self.bytes.split_at(size);
            buffer[..size].copy_from_slice(now);
            self.bytes = later;
            Ok(size)
        }
    }

    /// Returns all lines, and whether an error came at the end.
    fn read(bytes: &[u8], sizes: Vec<usize>, at_once: usize, fails: bool) -> (Vec<Vec<u8>>, bool) {
        let mut chunks = Chunks::new(Parts { bytes, sizes, turn: 0, fails }, at_once);
        let (mut lines, mut text) = (Vec::new(), Text::default());
        loop {
            match chunks.fill(&mut text) {
                Ok(true) => {
                    assert!(text.bytes().len() <= LONGEST_LINE + 1 + at_once, "{} bytes", text.bytes().len());
                    lines.extend(text.lines().map(<[u8]>::to_vec));
                }
                Ok(false) => return (lines, false),
                Err(error) => {
                    assert_eq!(error.to_string(), "damaged");
                    assert!(!chunks.fill(&mut text).unwrap());
                    return (lines, true);
                }
            }
        }
    }

    fn expected(bytes: &[u8]) -> Vec<Vec<u8>> {
        let pieces = bytes.split_inclusive(|&byte| byte == b'\n');
        let line = |piece: &[u8]| {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let mut kept = text[..text.len().min(LONGEST_LINE)].to_vec();
            while text.len() <= LONGEST_LINE && kept.ends_with(b"\r") {
                kept.pop();
            }
            kept
        };
        pieces.map(line).collect()
    }

    #[test]
    fn line_ends_of_all_kinds() {
        let (lines, _) = read(b"one\r\n\ntwo\r\r\n\r\nlast", vec![3], 64, false);
        assert_eq!(lines, [&b"one"[..], b"", b"two", b"", b"last"]);
        assert_eq!(read(b"", vec![9], 64, false), (Vec::new(), false));
    }

    #[test]
    fn an_error_comes_after_all_that_was_read() {
        let (lines, failed) = read(b"one\ntwo\nhal", vec![4], 64, true);
        assert!(failed);
        assert_eq!(lines.last().map(Vec::as_slice), Some(&b"hal"[..]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_lines_are_those_of_a_split(
            lines in prop::collection::vec(
                (
                    prop_oneof![
                        8 => 0..200_usize,
                        1 => LONGEST_LINE - 3..LONGEST_LINE + 4,
                        1 => Just(2 * LONGEST_LINE),
                        1 => 3 * LONGEST_LINE..6 * LONGEST_LINE,
                    ],
                    prop::sample::select(vec!["\n", "\r\n", "\r\r\n", "\r\rx\n"]),
                ),
                0..12,
            ),
            sizes in prop::collection::vec(prop_oneof![1..100_usize, 1_000..70_000_usize, Just(usize::MAX)], 1..4),
            at_once in prop_oneof![1..200_usize, Just(64 * 1024)],
            fails: bool,
            unfinished: bool,
        ) {
            let mut bytes = Vec::new();
            for (length, end) in lines {
                bytes.extend((0..length).map(|at| b'a' + (at % 23) as u8));
                bytes.extend_from_slice(end.as_bytes());
            }
            if unfinished {
                bytes.pop();
            }
            let (lines, failed) = read(&bytes, sizes, at_once, fails);
            prop_assert_eq!(failed, fails);
            let wanted = expected(&bytes);
            prop_assert_eq!(lines.len(), wanted.len());
            for (number, (line, wanted)) in lines.iter().zip(&wanted).enumerate() {
                prop_assert!(line == wanted, "line {number} of {} bytes, not {}", line.len(), wanted.len());
            }
        }
    }
}
