//! Sub-buffers of the kernel's ring buffer, and the records in them.
//!
//! Source: `kernel/trace/ring_buffer.c`, `include/linux/ring_buffer.h` and the files `events/header_page` and
//! `events/header_event` of tracefs, which are copied into the file. A sub-buffer begins with a time stamp (ns) and
//! with `commit`, the size of the rest; flags in its upper bits mean that events before it were lost. A record begins
//! with 32 bits: its type, which is its length if it is short, and the time since the previous record.

use std::ops::Range;

use super::{
    bytes::{Endian, Word},
    formats::Field,
};

/// `commit`: events before this sub-buffer were lost (`RB_MISSED_EVENTS`).
const MISSED: u64 = 1 << 31;

/// `commit`: the number of lost events is stored after the records (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;

/// `commit`: bytes of records; the bits between are reserved for flags.
const LENGTH: u64 = (1 << 27) - 1;

/// Bits of a time that do not fit into a record's first word.
const TIME_SHIFT: u32 = 27;

/// Upper bits of a time stamp, which are not in the records; they stay unchanged (`rb_fix_abs_ts`).
const TOP: u64 = !0 << 59;

/// Layout of sub-buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Byte order of numbers.
    pub endian: Endian,
    /// Place of the time stamp.
    pub time: Word,
    /// Place of the size of the records.
    pub commit: Word,
    /// Offset of the records.
    pub records: usize,
}

impl Layout {
    /// Parses `events/header_page`; `None` if it is something else.
    pub(crate) fn parse(text: &[u8], endian: Endian) -> Option<Self> {
        let fields = text.split(|&byte| byte == b'\n').filter_map(|line| Field::parse(line.trim_ascii()));
        let fields: Vec<_> = fields.collect();
        let word = |name: &[u8]| Some(fields.iter().find(|field| *field.name == *name)?.word);
        let (time, commit, data) = (word(b"timestamp")?, word(b"commit")?, word(b"data")?);
        let fits = |word: Word, size: usize| {
            word.size == size && word.offset.checked_add(size).is_some_and(|end| end <= data.offset)
        };
        let all_fit = fits(time, 8) && (fits(commit, 4) || fits(commit, 8)) && data.offset <= 256;
        let commit = Word { signed: false, ..commit };
        all_fit.then_some(Self { endian, time, commit, records: data.offset })
    }
}

/// Events that the tracer dropped: their number, if it is known.
pub(crate) type Lost = Option<u64>;

/// Records of one sub-buffer, in sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    at: usize,
    end: usize,
    /// Time of the previous record, ns.
    time: u64,
    /// Whether the bytes of the sub-buffer are truncated.
    is_cut: bool,
}

impl Records {
    /// Opens a sub-buffer; returns its records, and the loss before it. Its length should be `size` bytes, but may be
    /// less at the end of the file. An error is the reason.
    pub(crate) fn of(page: &[u8], size: usize, layout: &Layout) -> Result<(Self, Option<Lost>), String> {
        let (time, commit) = (layout.time.read(page, layout.endian), layout.commit.read(page, layout.endian));
        let (Some(time), Some(commit)) = (time, commit) else {
            return Err("the end within the head of a sub-buffer".into());
        };
        let length = (commit & LENGTH) as usize;
        let end = layout.records + length;
        if end > size {
            return Err(format!(
                "a sub-buffer with {length} bytes of records, where {} at most were expected",
                size.saturating_sub(layout.records)
            ));
        }
        let lost = (commit & MISSED != 0).then(|| {
            // A number as long as `commit`, the kernel's `unsigned long`.
            let count = Word { offset: end, ..layout.commit };
            let count = (commit & MISSED_STORED != 0).then(|| count.read(page, layout.endian)).flatten();
            count.filter(|&count| count > 0)
        });
        let is_cut = end > page.len();
        Ok((Self { at: layout.records, end: end.min(page.len()), time, is_cut }, lost))
    }

    /// Returns the next record that holds an event: its time (ns), and the place of its data; `None` at the end. An
    /// error is the reason why the rest cannot be read.
    #[inline]
    pub(crate) fn next(
        &mut self,
        page: &[u8],
        endian: Endian,
    ) -> Result<Option<(u64, Range<usize>)>, String> {
        let page = &page[..self.end.min(page.len())];
        while self.at < self.end {
            let (Some(head), array) = (endian.u32(page, self.at), endian.u32(page, self.at + 4)) else {
                return Err(self.damaged("the end within a record"));
            };
            let (kind, delta) = match endian {
                Endian::Little => (head & 31, head >> 5),
                Endian::Big => (head >> TIME_SHIFT, head & ((1 << TIME_SHIFT) - 1)),
            };
            let (delta, start) = (u64::from(delta), self.at + 4);
            if kind == 29 && delta == 0 {
                // Only padding follows.
                self.at = self.end;
                break;
            }
            if let 1..=28 = kind {
                let end = start + 4 * kind as usize;
                if end > page.len() {
                    return Err(self.damaged("the end within a record"));
                }
                self.at = end;
                self.time = self.time.wrapping_add(delta);
                return Ok(Some((self.time, start..end)));
            }
            let Some(array) = array else { return Err(self.damaged("the end within a record")) };
            match kind {
                30 => {
                    self.time = self.time.wrapping_add(delta + (u64::from(array) << TIME_SHIFT));
                    self.at = start + 4;
                    continue;
                }
                31 => {
                    let time = (delta + (u64::from(array) << TIME_SHIFT)) | (self.time & TOP);
                    let has_wrapped = self.time & TOP != 0 && time < self.time;
                    self.time = if has_wrapped { time.wrapping_add(1 << 59) } else { time };
                    self.at = start + 4;
                    continue;
                }
                _ => {}
            }
            // Its length, including these four bytes: of an event, or of padding in place of a discarded one.
            let end = start.saturating_add(array as usize);
            if array < 4 || end > page.len() {
                let what = format!("a record of {array} bytes, with {} left", page.len() - start);
                return Err(self.damaged(&what));
            }
            self.at = end.next_multiple_of(4);
            self.time = self.time.wrapping_add(delta);
            if kind == 0 {
                return Ok(Some((self.time, start + 4..end)));
            }
        }
        if self.is_cut {
            return Err(self.damaged("the end of the file within a sub-buffer"));
        }
        Ok(None)
    }

    /// Gives up the rest of this sub-buffer.
    #[cold]
    fn damaged(&mut self, what: &str) -> String {
        let why = if self.is_cut { "the end of the file within a sub-buffer" } else { what };
        let why = format!("{why}, after {} of {} bytes", self.at, self.end);
        (self.at, self.is_cut) = (self.end, false);
        why
    }
}
