//! Checks that the lines of a reader are those of a split, however the bytes arrive.

use std::io::{self, ErrorKind, Read};

use arbitrary::{Arbitrary, Unstructured};
use nntrace_user::replay::lines::{Chunks, LONGEST_LINE, Text};

/// Text, and the way in which it arrives.
#[derive(Arbitrary)]
struct Input<'a> {
    /// Sizes of the reads, in turn; 0 for an interrupted one.
    sizes: Vec<u16>,
    /// Whether the reader ends with an error.
    fails: bool,
    /// Bytes to repeat, and how often: lines are truncated at a length that no short input has.
    runs: Vec<(u16, &'a [u8])>,
}

/// Bytes of a text at most: more than a reader's buffer.
const MOST: usize = 5 * LONGEST_LINE;

/// Bytes read at once: fewer than in a long line.
const AT_ONCE: usize = 32 * 1024;

/// Checks one input.
///
/// # Panics
/// When a line is missing or different.
pub fn check(data: &[u8]) {
    let Ok(Input { sizes, fails, runs }) = Input::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let mut text = Vec::new();
    for (times, bytes) in runs {
        let room = (MOST - text.len()) / bytes.len().max(1);
        text.extend(bytes.repeat(usize::from(times).min(room)));
    }
    let mut chunks = Chunks::new(Parts { bytes: &text, sizes: &sizes, turn: 0, fails }, AT_ONCE);
    let mut pieces = text.split_inclusive(|&byte| byte == b'\n');
    let mut chunk = Text::default();
    let mut number = 0;
    let ends_well = loop {
        match chunks.fill(&mut chunk) {
            Ok(true) => {}
            Ok(false) => break true,
            Err(_) => break false,
        }
        for line in chunk.lines() {
            number += 1;
            let piece = pieces.next().expect("there is no line more");
            let whole = piece.strip_suffix(b"\n").unwrap_or(piece);
            let kept = whole.get(..LONGEST_LINE).filter(|kept| kept.len() < whole.len());
            let kept = kept.unwrap_or_else(|| without_returns(whole));
            // Without `assert_eq`, which would print 64 KiB.
            assert!(line == kept, "line {number} of {} bytes, not {}", line.len(), kept.len());
        }
    };
    assert!(pieces.next().is_none(), "no line is missing after {number}");
    assert_eq!(ends_well, !fails);
    assert!(chunks.fill(&mut chunk).is_ok_and(|is_more| !is_more), "the end is the end");
}

fn without_returns(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| byte != b'\r').map_or(0, |at| at + 1);
    &line[..end]
}

/// Reader of bytes in reads of these sizes, and then perhaps an error.
struct Parts<'a> {
    bytes: &'a [u8],
    sizes: &'a [u16],
    turn: usize,
    fails: bool,
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        // More turns than sizes: one read for each, with one of the full size in between.
        let size = self.sizes.get(self.turn % (self.sizes.len() + 1)).map_or(usize::MAX, |&size| size.into());
        if size == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.bytes.is_empty() && std::mem::take(&mut self.fails) {
            return Err(io::Error::other("damaged"));
        }
        let (now, later) = self.bytes.split_at(size.min(buffer.len()).min(self.bytes.len()));
        buffer[..now.len()].copy_from_slice(now);
        self.bytes = later;
        Ok(now.len())
    }
}
