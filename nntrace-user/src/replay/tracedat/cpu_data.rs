//! Recorded data of one CPU: its sub-buffers are read from the file a few at a time.

use std::{fs::File, io::ErrorKind, ops::Range, os::unix::fs::FileExt};

use super::{
    bytes::Damage,
    compression::{Compression, Unpacker},
    pages::{Layout, Lost, Records},
};

/// Bytes of sub-buffers read at once, if not compressed.
const BLOCK: u64 = 32 * 1024;

/// Unpacked bytes of a chunk at most; trace-cmd's have a few hundred kilobytes.
const LONGEST_CHUNK: u32 = 16 << 20;

/// Location of a CPU's sub-buffers in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// CPU number.
    pub cpu: u32,
    /// Range of bytes.
    pub bytes: Range<u64>,
    /// Bytes of a sub-buffer.
    pub page_size: u32,
}

/// Reader of the sub-buffers of a CPU.
pub(crate) struct Stream<'a> {
    file: &'a File,
    layout: Layout,
    /// CPU number.
    pub cpu: u32,
    page_size: usize,
    /// Range that was not read yet.
    rest: Range<u64>,
    /// Decompressor, and number of remaining chunks once that is known.
    chunks: Option<(Unpacker, Option<u32>)>,
    packed: Vec<u8>,
    /// Some sub-buffers.
    block: Vec<u8>,
    /// Offset of the block in the file.
    block_offset: u64,
    /// Current sub-buffer.
    page: Range<usize>,
    records: Records,
    /// Time of the current event, ns.
    pub time: u64,
    event: Range<usize>,
    lost: Option<Lost>,
    damage: Option<Damage>,
    /// Number of further damaged places.
    more_damage: u64,
}

impl<'a> Stream<'a> {
    /// Creates a reader before the first event.
    pub(crate) fn new(
        file: &'a File,
        place: &Place,
        layout: Layout,
        compression: Option<Compression>,
    ) -> Self {
        let mut rest = place.bytes.clone();
        if compression.is_some() {
            // The size in the file is that of the chunks, without their number.
            rest.end = rest.end.saturating_add(4);
        }
        Self {
            file,
            layout,
            cpu: place.cpu,
            page_size: place.page_size as usize,
            rest,
            chunks: compression.map(|compression| (Unpacker::new(compression), None)),
            packed: Vec::new(),
            block: Vec::new(),
            block_offset: 0,
            page: 0..0,
            records: Records::default(),
            time: 0,
            event: 0..0,
            lost: None,
            damage: None,
            more_damage: 0,
        }
    }

    /// Returns the data of the current event.
    #[inline]
    pub(crate) fn event(&self) -> &[u8] {
        &self.block[self.page.clone()][self.event.clone()]
    }

    /// Takes the loss before the current event.
    #[inline]
    pub(crate) fn take_lost(&mut self) -> Option<Lost> {
        self.lost.take()
    }

    /// Advances to the next event; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        loop {
            match self.records.next(&self.block[self.page.clone()], self.layout.endian) {
                Ok(Some((time, event))) => {
                    (self.time, self.event) = (time, event);
                    return true;
                }
                Ok(None) => {}
                Err(what) => self.damaged(self.page_offset(), what),
            }
            if !self.turn_page() {
                return false;
            }
        }
    }

    /// Takes the message on the damage read so far.
    pub(crate) fn damage(&mut self) -> Option<String> {
        let damage = self.damage.take()?;
        let more = match self.more_damage {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!("CPU {}: {damage}{more}", self.cpu))
    }

    /// Advances to the next readable sub-buffer; false at the end.
    #[cold]
    fn turn_page(&mut self) -> bool {
        loop {
            if self.page.end >= self.block.len() && !self.fill() {
                return false;
            }
            let start = self.page.end;
            self.page = start..self.block.len().min(start + self.page_size);
            match Records::of(&self.block[self.page.clone()], self.page_size, &self.layout) {
                Ok((records, lost)) => {
                    self.records = records;
                    // A sub-buffer without events may have losses, too.
                    self.lost = match (self.lost.take(), lost) {
                        (Some(before), Some(now)) => Some(before.zip(now).map(|(a, b)| a.saturating_add(b))),
                        (before, now) => now.or(before),
                    };
                    return true;
                }
                Err(what) => self.damaged(self.page_offset(), what),
            }
        }
    }

    /// Reads the next block; false at the end.
    fn fill(&mut self) -> bool {
        while !self.rest.is_empty() {
            self.page = 0..0;
            self.block_offset = self.rest.start;
            if if self.chunks.is_some() { self.unpack() } else { self.read() } {
                return true;
            }
        }
        self.page = 0..0;
        self.block.clear();
        false
    }

    /// Reads some sub-buffers; false where the file ends.
    fn read(&mut self) -> bool {
        let page = self.page_size as u64;
        let size = (BLOCK / page * page).max(page).min(self.rest.end - self.rest.start);
        self.block.resize(size as usize, 0);
        let (count, error) = read_at(self.file, &mut self.block, self.rest.start);
        self.block.truncate(count);
        if (count as u64) < size {
            let left = self.rest.end - self.rest.start - count as u64;
            let what = format!("{error}, {left} bytes before the end of the CPU's data");
            self.damaged(self.rest.start + count as u64, what);
            self.rest.start = self.rest.end;
        } else {
            self.rest.start += size;
        }
        count > 0
    }

    /// Unpacks the next chunk; false where that fails.
    fn unpack(&mut self) -> bool {
        let Some((mut unpacker, count)) = self.chunks.take() else { return false };
        let result = self.next_chunk(&mut unpacker, count);
        let (count, unpacked) = match result {
            Ok(chunk) => chunk,
            Err(damage) => {
                self.rest.start = self.rest.end;
                self.keep(damage);
                (0, false)
            }
        };
        self.chunks = Some((unpacker, Some(count)));
        if count == 0 {
            self.rest.start = self.rest.end;
        }
        unpacked
    }

    /// Returns the number of chunks after the next one, and whether that one could be unpacked. If its header is
    /// damaged, nothing after it can be read.
    fn next_chunk(&mut self, unpacker: &mut Unpacker, count: Option<u32>) -> Result<(u32, bool), Damage> {
        let count = match count {
            Some(count) => count,
            None => self.number("the number of chunks")?,
        };
        let Some(left) = count.checked_sub(1) else { return Ok((0, false)) };
        let start = self.rest.start;
        let packed = self.number("the size of a chunk")?;
        let size = self.number("the unpacked size of a chunk")?;
        if size > LONGEST_CHUNK {
            return Err(Damage::unexpected(
                start,
                format!("a chunk of {size} bytes"),
                format!("{LONGEST_CHUNK} at most"),
            ));
        }
        let left_bytes = (self.rest.end - self.rest.start).min(LONGEST_CHUNK.into());
        if u64::from(packed) > left_bytes {
            return Err(Damage::unexpected(
                start,
                format!("a chunk of {packed} packed bytes"),
                format!("{left_bytes} at most"),
            ));
        }
        self.block_offset = self.rest.start;
        self.packed.clear();
        let mut packed_bytes = std::mem::take(&mut self.packed);
        packed_bytes.resize(packed as usize, 0);
        let (read, error) = read_at(self.file, &mut packed_bytes, self.rest.start);
        let unpacked = if read == packed_bytes.len() {
            unpacker.unpack(&packed_bytes, size as usize, &mut self.block)
        } else {
            self.rest.start = self.rest.end;
            Err(format!("{error} within a chunk"))
        };
        self.packed = packed_bytes;
        self.rest.start = (self.rest.start + u64::from(packed)).min(self.rest.end);
        if let Err(why) = unpacked {
            self.block.clear();
            self.damaged(self.block_offset, format!("a chunk cannot be unpacked: {why}"));
            return Ok((left, false));
        }
        Ok((left, !self.block.is_empty()))
    }

    /// Reads four bytes.
    fn number(&mut self, what: &str) -> Result<u32, Damage> {
        let mut bytes = [0; 4];
        let start = self.rest.start;
        let (count, error) = read_at(self.file, &mut bytes, start);
        if count < 4 || self.rest.end - start < 4 {
            return Err(Damage::unexpected(start, error, what));
        }
        self.rest.start += 4;
        self.layout.endian.u32(&bytes, 0).ok_or_else(|| Damage::unexpected(start, "the end", what))
    }

    /// Returns the offset of the current sub-buffer; of a compressed one, that of its chunk.
    fn page_offset(&self) -> u64 {
        let inside = if self.chunks.is_some() { 0 } else { self.page.start as u64 };
        self.block_offset + inside
    }

    #[cold]
    fn damaged(&mut self, offset: u64, what: String) {
        self.keep(Damage::new(offset, what));
    }

    fn keep(&mut self, damage: Damage) {
        self.more_damage += u64::from(self.damage.is_some());
        self.damage.get_or_insert(damage);
    }
}

/// Reads as much as there is, and returns the reason for its end.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> (usize, String) {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (count, error.to_string()),
        }
    }
    (count, "the end of the file".into())
}
