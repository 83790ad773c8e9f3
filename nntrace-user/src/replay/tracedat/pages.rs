//! Sub-buffers of the kernel's ring buffer, and the records in them.
//!
//! Source: `kernel/trace/ring_buffer.c`, `include/linux/ring_buffer.h` and the files `events/header_page` and
//! `events/header_event` of tracefs, which a file holds a copy of. A sub-buffer begins with a time stamp (ns) and with
//! `commit`, the size of what follows; flags in its upper bits tell that events before it were lost. A record begins
//! with 32 bits: its type, which is its length where it is short, and the time since the one before it.

use std::ops::Range;

use super::{
    bytes::{Endian, Word},
    formats::Field,
};

/// `commit`: events before this sub-buffer were lost (`RB_MISSED_EVENTS`).
const MISSED: u64 = 1 << 31;

/// `commit`: how many stands behind the records (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;

/// `commit`: bytes of records; the bits between are for flags to come.
const LENGTH: u64 = (1 << 27) - 1;

/// Bits of a time that do not fit into a record's first word.
const TIME_SHIFT: u32 = 27;

/// Bits of a whole time stamp that the records hold none of; they stay as they were (`rb_fix_abs_ts`).
const TOP: u64 = !0 << 59;

/// How sub-buffers are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// How numbers are written.
    pub endian: Endian,
    /// Where the time stamp is.
    pub time: Word,
    /// Where the size of the records is.
    pub commit: Word,
    /// Where the records begin.
    pub records: usize,
}

impl Layout {
    /// Reads `events/header_page`; `None` where it is not that.
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

/// Events that the tracer dropped: so many, or it does not say.
pub(crate) type Lost = Option<u64>;

/// The records of one sub-buffer, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    at: usize,
    end: usize,
    /// Of the record before, ns.
    time: u64,
    /// The sub-buffer's bytes end before it does.
    is_cut: bool,
}

impl Records {
    /// The records of a sub-buffer, and what was lost before it. `size` bytes long by rights, its bytes may be fewer
    /// where the file ends. An error tells what is wrong.
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
            // A number as long as `commit` is, the kernel's `unsigned long`.
            let count = Word { offset: end, ..layout.commit };
            let count = (commit & MISSED_STORED != 0).then(|| count.read(page, layout.endian)).flatten();
            count.filter(|&count| count > 0)
        });
        let is_cut = end > page.len();
        Ok((Self { at: layout.records, end: end.min(page.len()), time, is_cut }, lost))
    }

    /// The next record that holds an event: its time (ns), and where its data stands; `None` at the end. An error tells
    /// what is wrong with the rest.
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
                // Nothing but padding follows.
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
            // Its length, with these four bytes: of an event, or of padding where one was discarded.
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

    /// Nothing more can be had of this sub-buffer.
    #[cold]
    fn damaged(&mut self, what: &str) -> String {
        let why = if self.is_cut { "the end of the file within a sub-buffer" } else { what };
        let why = format!("{why}, after {} of {} bytes", self.at, self.end);
        (self.at, self.is_cut) = (self.end, false);
        why
    }
}
