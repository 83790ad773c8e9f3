//! Parsing of the text before the event by comparison with earlier lines: the columns of a thread, and flags and
//! seconds, repeat exactly, and parsing them digit by digit is most of the work on a line.
//!
//! Everything in the caches was parsed by the parser itself, and follows from the compared bytes alone: the results
//! are the same.

use memchr::memchr;

use super::{
    Head, Parsed, Stamp, Task, before_fraction, finish, fraction, number, parse, skip_difference, task,
};
use crate::model::parse_cache::ParseCache;

/// Number of threads whose columns are cached.
const TASKS: usize = 1024;
/// Number of flags and seconds in the cache: within one second only the flags differ.
const STAMPS: usize = 32;

/// Columns of the lines before.
#[derive(Default)]
pub struct Columns {
    /// Position of the last `[`.
    bracket: usize,
    /// Position of the decimal point in the last time, from `]` on.
    point: usize,
    /// Columns before `[`.
    tasks: ParseCache<Known, TASKS>,
    /// Process and seconds (ns) of `] (TGID) FLAGS SECONDS.`.
    seconds: ParseCache<Stamp, STAMPS>,
}

/// Parsed columns of a thread.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Range of the name.
    comm: (u8, u8),
    tid: u32,
    tgid: Option<u32>,
}

impl Columns {
    /// Parses one line, without its line end, to the same result as [`parse`].
    #[inline]
    pub fn parse<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        match self.head(line) {
            Some((head, text)) => finish(head, text),
            None => parse(line),
        }
    }

    /// Splits off the columns before the event; `None` where that needs the whole parser.
    #[inline]
    fn head<'a>(&mut self, line: &'a [u8]) -> Option<(Head<'a>, &'a [u8])> {
        if line.get(self.bracket) != Some(&b'[') {
            self.bracket = memchr(b'[', line)?;
        }
        let (before, after) = line.split_at(self.bracket);
        let Known { comm, tid, tgid } = self.tasks.get(before, Known::read)?;
        let comm = &before[usize::from(comm.0)..usize::from(comm.1)];
        let (cpu, stamp, text) = self.after_bracket(&after[1..])?;
        Some((Head { comm, tid, tgid: tgid.or(stamp.tgid), cpu, time: stamp.ns }, text))
    }

    /// Parses the CPU, the time, and the text of the event.
    #[inline]
    fn after_bracket<'a>(&mut self, text: &'a [u8]) -> Option<(u32, Stamp, &'a [u8])> {
        let (cpu, text) = match text {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] if rest.first() == Some(&b']') => {
                let digit = |byte: &u8| u32::from(byte - b'0');
                (digit(a) * 100 + digit(b) * 10 + digit(c), rest)
            }
            _ => number(text)?,
        };
        let (stamp, text) = self.seconds(text)?;
        let (ns, text) = match text.split_first_chunk() {
            Some((chunk, rest)) if let Some(us) = microseconds(*chunk) => (stamp.ns + us * 1_000, rest),
            _ => fraction(stamp.ns, text)?,
        };
        let stamp = Stamp { ns, ..stamp };
        match text {
            [b' ' | b'\t' | b'(', ..] => Some((cpu, stamp, skip_difference(text)?)),
            _ => Some((cpu, stamp, text)),
        }
    }

    /// Parses the whole seconds of `] (TGID) FLAGS SECONDS.`, and returns the rest.
    #[inline]
    fn seconds<'a>(&mut self, text: &'a [u8]) -> Option<(Stamp, &'a [u8])> {
        let read =
            |stamp: &[u8]| before_fraction(stamp).filter(|(_, rest)| rest.is_empty()).map(|(stamp, _)| stamp);
        if let Some((stamp, rest)) = text.split_at_checked(self.point + 1)
            && let Some(stamp) = self.seconds.get(stamp, read)
        {
            return Some((stamp, rest));
        }
        let (stamp, rest) = before_fraction(text)?;
        self.point = text.len() - rest.len() - 1;
        Some((stamp, rest))
    }
}

impl Known {
    /// Parses the columns of a thread; `None` where there is none, or where finding `[CPU]` needs the rest of the
    /// line.
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

/// Parses the number in `123456: `, without a branch for each digit.
#[inline]
const fn microseconds(text: [u8; 8]) -> Option<u64> {
    // Digits become their values, the colon and the blank 0.
    let word = u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"000000: ");
    // The largest value that keeps each byte's highest bit clear: one more sets it.
    let room = u64::from_le_bytes([0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x7f, 0x7f]);
    let highest = u64::from_le_bytes([0x80; 8]);
    if (((word & !highest) + room) | word) & highest != 0 {
        return None;
    }
    // In every second byte: ten times itself, plus the next one.
    let pairs = word * 10 + (word >> 8);
    Some((pairs & 0xff) * 10_000 + ((pairs >> 16) & 0xff) * 100 + ((pairs >> 32) & 0xff))
}

#[cfg(test)]
mod tests;
