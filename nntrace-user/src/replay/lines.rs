//! Lines from a reader, without an allocation or a copy for each.

use std::io::{self, ErrorKind, Read};

use memchr::memchr;

/// Bytes of a line that are kept; longer ones are truncated.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Bytes read at once: some hundred lines, so that the cost of a read does not matter, and few enough to leave the
/// caches to the accounting.
const CHUNK: usize = 32 * 1024;

/// Room for a chunk after the kept begin of a line.
const BUFFER: usize = LONGEST_LINE + 1 + CHUNK;

/// Splitter of a reader's text into lines.
pub struct LineReader<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// End of the lines handed out.
    start: usize,
    /// End of the part after `start` that is known to have no line end.
    searched: usize,
    /// End of the text.
    end: usize,
    /// Whether the reader has no more.
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> LineReader<R> {
    /// Reads from the reader's current position.
    pub fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { reader, buffer, start: 0, searched: 0, end: 0, ended: false, error: None }
    }

    /// Returns the next line, without its end (`\n`, and any `\r` before it), truncated to its first [`LONGEST_LINE`]
    /// bytes; `None` at the end.
    ///
    /// # Errors
    /// When the reader fails: after everything it had provided, including a line without an end. Then there is
    /// nothing more.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend from its own buffer")]
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if let Some(end) = self.find() {
            return Ok(Some(self.take(end, true)));
        }
        self.refill()
    }

    /// Finds the end of the line in the buffer.
    #[inline]
    fn find(&mut self) -> Option<usize> {
        let found = memchr(b'\n', &self.buffer[self.searched..self.end]).map(|at| self.searched + at);
        self.searched = found.unwrap_or(self.end);
        found
    }

    /// Hands out the text before `end`.
    #[inline]
    fn take(&mut self, end: usize, ended: bool) -> &[u8] {
        let range = self.start..end;
        self.start = end + usize::from(ended);
        self.searched = self.start;
        trim(&self.buffer[range])
    }

    /// Returns the next line, whose end is not in the buffer.
    #[cold]
    fn refill(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if self.end - self.start > LONGEST_LINE {
                // One byte more than the kept ones stays, to show that the line was longer.
                self.end = self.start + LONGEST_LINE + 1;
                self.searched = self.end;
            }
            // Always to the same place, which stays in the caches.
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
            if !self.fill() {
                break;
            }
            if let Some(end) = self.find() {
                return Ok(Some(self.take(end, true)));
            }
        }
        if self.start < self.end {
            return Ok(Some(self.take(self.end, false)));
        }
        self.error.take().map_or(Ok(None), Err)
    }

    /// Reads more into the buffer; false when there is no more.
    fn fill(&mut self) -> bool {
        while !self.ended {
            match self.reader.read(&mut self.buffer[self.end..][..CHUNK]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.end += count;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
        }
        false
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

    /// Reader of bytes in chunks of these sizes, with interruptions in between, and then perhaps an error.
    struct Chunks<'a> {
        bytes: &'a [u8],
        sizes: Vec<usize>,
        turn: usize,
        fails: bool,
    }

    impl Read for Chunks<'_> {
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
    fn read(bytes: &[u8], sizes: Vec<usize>, fails: bool) -> (Vec<Vec<u8>>, bool) {
        let mut reader = LineReader::new(Chunks { bytes, sizes, turn: 0, fails });
        let mut lines = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(line)) => lines.push(line.to_vec()),
                Ok(None) => return (lines, false),
                Err(error) => {
                    assert_eq!(error.to_string(), "damaged");
                    assert_eq!(reader.next().unwrap(), None);
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
        let (lines, _) = read(b"one\r\n\ntwo\r\r\n\r\nlast", vec![3], false);
        assert_eq!(lines, [&b"one"[..], b"", b"two", b"", b"last"]);
        assert_eq!(read(b"", vec![9], false), (Vec::new(), false));
    }

    #[test]
    fn an_error_comes_after_all_that_was_read() {
        let (lines, failed) = read(b"one\ntwo\nhal", vec![4], true);
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
            fails: bool,
            unended: bool,
        ) {
            let mut bytes = Vec::new();
            for (length, end) in lines {
                bytes.extend((0..length).map(|at| b'a' + (at % 23) as u8));
                bytes.extend_from_slice(end.as_bytes());
            }
            if unended {
                bytes.pop();
            }
            let (lines, failed) = read(&bytes, sizes, fails);
            prop_assert_eq!(failed, fails);
            let wanted = expected(&bytes);
            prop_assert_eq!(lines.len(), wanted.len());
            for (number, (line, wanted)) in lines.iter().zip(&wanted).enumerate() {
                prop_assert!(line == wanted, "line {number} of {} bytes, not {}", line.len(), wanted.len());
            }
        }
    }
}
