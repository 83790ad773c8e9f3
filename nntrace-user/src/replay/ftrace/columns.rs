//! What stands before the event, by comparing it with the lines before: the columns of a thread, and flags and seconds
//! come again and again as they are. Reading them digit by digit is most of the work on a line.
//!
//! All that is known here was read by the parser itself, and follows from the bytes that are compared alone: the
//! results are the same.

use memchr::memchr;

use super::{Head, Parsed, Task, before_fraction, finish, fraction, number, parse, skip_difference, task};
use crate::replay::parse_cache::ParseCache;

/// Threads whose columns are remembered.
const TASKS: usize = 1024;
/// Flags and seconds that are remembered: what differs at one time is the flags.
const STAMPS: usize = 32;

/// The columns of the lines before.
#[derive(Default)]
pub struct Columns {
    /// Where `[` stood.
    bracket: usize,
    /// Where the decimal point of the time stood, from `]` on.
    point: usize,
    /// What stands before `[`.
    tasks: ParseCache<Known, TASKS>,
    /// The seconds (ns) of `] FLAGS SECONDS.`.
    seconds: ParseCache<u64, STAMPS>,
}

/// What the columns of a thread say.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Where the name begins, and ends.
    comm: (u8, u8),
    tid: u32,
    tgid: Option<u32>,
}

impl Columns {
    /// Reads one line, without its line end: the same as [`parse`].
    #[inline]
    pub fn parse<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        match self.head(line) {
            Some((head, text)) => finish(head, text),
            None => parse(line),
        }
    }

    /// What stands before the event, and the event; `None` where it takes more to tell.
    #[inline]
    fn head<'a>(&mut self, line: &'a [u8]) -> Option<(Head<'a>, &'a [u8])> {
        if line.get(self.bracket) != Some(&b'[') {
            self.bracket = memchr(b'[', line)?;
        }
        let (before, after) = line.split_at(self.bracket);
        let Known { comm, tid, tgid } = self.tasks.get(before, Known::read)?;
        let comm = &before[usize::from(comm.0)..usize::from(comm.1)];
        let (cpu, time, text) = self.after_bracket(&after[1..])?;
        Some((Head { comm, tid, tgid, cpu, time }, text))
    }

    /// The CPU, the time (ns), and the text of the event.
    #[inline]
    fn after_bracket<'a>(&mut self, text: &'a [u8]) -> Option<(u32, u64, &'a [u8])> {
        let (cpu, text) = match text {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] if rest.first() == Some(&b']') => {
                let [a, b, c] = [a, b, c].map(|digit| u32::from(digit - b'0'));
                (a * 100 + b * 10 + c, rest)
            }
            _ => number(text)?,
        };
        let (seconds, text) = self.seconds(text)?;
        let (time, text) = match text.split_first_chunk() {
            Some((chunk, rest)) if let Some(us) = microseconds(*chunk) => (seconds + us * 1_000, rest),
            _ => fraction(seconds, text)?,
        };
        match text {
            [b' ' | b'\t' | b'(', ..] => Some((cpu, time, skip_difference(text)?)),
            _ => Some((cpu, time, text)),
        }
    }

    /// The seconds (ns) of `] FLAGS SECONDS.`, and what follows.
    #[inline]
    fn seconds<'a>(&mut self, text: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let read = |stamp: &[u8]| {
            before_fraction(stamp).filter(|(_, rest)| rest.is_empty()).map(|(seconds, _)| seconds)
        };
        if let Some((stamp, rest)) = text.split_at_checked(self.point + 1)
            && let Some(seconds) = self.seconds.get(stamp, read)
        {
            return Some((seconds, rest));
        }
        let (seconds, rest) = before_fraction(text)?;
        self.point = text.len() - rest.len() - 1;
        Some((seconds, rest))
    }
}

impl Known {
    /// What is no thread, or holds something that is told from `[CPU]` by the rest of the line alone, is not known.
    #[cold]
    fn read(text: &[u8]) -> Option<Self> {
        if text.first() == Some(&b'#') || memchr(b'[', text).is_some() {
            return None;
        }
        let Task::Known { comm, tid, tgid } = task(text) else { return None };
        let start = comm.as_ptr() as usize - text.as_ptr() as usize;
        let range = (u8::try_from(start).ok()?, u8::try_from(start + comm.len()).ok()?);
        Some(Self { comm: range, tid, tgid })
    }
}

/// The number in `123456: `, without a branch for each digit.
#[inline]
const fn microseconds(text: [u8; 8]) -> Option<u64> {
    // Digits become their values, the rest 0.
    let word = u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"000000: ");
    // The room of each byte: one more, and its highest bit is set.
    let room = u64::from_le_bytes([0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x7f, 0x7f]);
    let highest = u64::from_le_bytes([0x80; 8]);
    if (((word & !highest) + room) | word) & highest != 0 {
        return None;
    }
    // Each second byte: ten times itself, and the one after it.
    let pairs = word * 10 + (word >> 8);
    Some((pairs & 0xff) * 10_000 + ((pairs >> 16) & 0xff) * 100 + ((pairs >> 32) & 0xff))
}

#[cfg(test)]
mod tests;
