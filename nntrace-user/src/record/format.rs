//! Headers of files and blocks. `docs/format.md` describes them byte by byte.

use std::{fmt, path::Path};

/// First bytes of a file.
pub(super) const MAGIC: [u8; 8] = *b"NNTREC\r\n";
/// Version that is written: readers refuse a larger major one.
pub(super) const VERSION: (u16, u16) = (1, 2);
/// Bytes of a file's header.
pub(super) const FILE_HEADER: usize = 32;
/// First bytes of a block.
pub(super) const BLOCK_MAGIC: [u8; 4] = *b"NNB\n";
/// Bytes of a block's header.
pub(super) const BLOCK_HEADER: usize = 64;
/// Bytes of events in a block at most, before compression: a reader has a block of every stream in memory.
pub(super) const LONGEST_EVENTS: u32 = 16 << 20;
/// Bytes of a checkpoint at most, before compression.
pub(super) const LONGEST_CHECKPOINT: u32 = 256 << 20;
/// Name of the file that each recording has.
pub(super) const RUN_FILE: &str = "run.nnt";
/// Name of the files that have the states of a recording that gives up its oldest events, without their ends.
pub(super) const STATES: &str = "states";
/// Ending of the names of all files.
pub(super) const EXTENSION: &str = "nnt";

/// Whether a path is the folder of a recording.
#[must_use]
pub fn is_recording(path: &Path) -> bool {
    path.join(RUN_FILE).is_file()
}

/// One stream of events, in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stream {
    /// The run: changes that concern no single thread or CPU, and checkpoints.
    Run,
    /// Threads with few events.
    Threads,
    /// One thread, by its number.
    Thread(u32),
    /// One CPU.
    Cpu(u32),
    /// Stream of a kind that a later minor version has, by its kind and its number.
    Other(u32, u32),
}

impl Stream {
    const fn codes(self) -> (u32, u32) {
        match self {
            Self::Run => (0, 0),
            Self::Threads => (1, 0),
            Self::Thread(number) => (2, number),
            Self::Cpu(cpu) => (3, cpu),
            Self::Other(kind, number) => (kind, number),
        }
    }

    const fn from_codes(kind: u32, number: u32) -> Self {
        match kind {
            0 => Self::Run,
            1 => Self::Threads,
            2 => Self::Thread(number),
            3 => Self::Cpu(number),
            _ => Self::Other(kind, number),
        }
    }
}

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Major and minor version.
    pub(super) version: (u16, u16),
    /// Stream in the file.
    pub(super) stream: Stream,
    /// Number of the recording, by which its files belong together.
    pub(super) recording: u64,
}

/// Reason why a file's header is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// It is no file of a recording, or its header is damaged.
    Damaged,
    /// It is of a newer version.
    Newer(u16, u16),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = VERSION;
        match self {
            Self::Damaged => formatter.write_str("it has no intact header of a recording's file"),
            Self::Newer(newer, other) => write!(
                formatter,
                "its format is {newer}.{other}, and this nntrace-bpf reads {major}.{minor}: use the one that recorded it, or a newer one"
            ),
        }
    }
}

impl FileHeader {
    /// Creates the header of a stream of a recording.
    pub(super) fn new(stream: Stream, recording: u64) -> Self {
        Self { version: VERSION, stream, recording }
    }

    /// Returns the header's bytes.
    pub(super) fn bytes(self) -> [u8; FILE_HEADER] {
        let (kind, number) = self.stream.codes();
        let mut fields = Fields::<FILE_HEADER>::new(&MAGIC);
        fields.put(&self.version.0.to_le_bytes());
        fields.put(&self.version.1.to_le_bytes());
        fields.put(&kind.to_le_bytes());
        fields.put(&number.to_le_bytes());
        fields.put(&self.recording.to_le_bytes());
        fields.sealed()
    }

    /// Reads a header.
    pub(super) fn read(bytes: &[u8; FILE_HEADER]) -> Result<Self, HeaderError> {
        if bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        let version = (half(bytes, 8), half(bytes, 10));
        if !is_sealed(bytes) {
            return Err(HeaderError::Damaged);
        }
        if version.0 > VERSION.0 {
            return Err(HeaderError::Newer(version.0, version.1));
        }
        let stream = Stream::from_codes(word(bytes, 12), word(bytes, 16));
        Ok(Self { version, stream, recording: long(bytes, 20) })
    }
}

/// Content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Events.
    Events,
    /// State of the run after the events up to the block's last one, in JSON.
    Checkpoint,
    /// Content of a kind that a later minor version has: readers pass over it.
    Other(u8),
}

impl Content {
    const fn code(self) -> u8 {
        match self {
            Self::Events => 0,
            Self::Checkpoint => 1,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Events,
            1 => Self::Checkpoint,
            _ => Self::Other(code),
        }
    }

    /// Returns how many bytes it has at most, before compression.
    pub(super) const fn longest(self) -> u32 {
        match self {
            Self::Events => LONGEST_EVENTS,
            Self::Checkpoint | Self::Other(_) => LONGEST_CHECKPOINT,
        }
    }
}

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// Kind of the content.
    pub(super) content: Content,
    /// Whether it is compressed by zstd.
    pub(super) is_compressed: bool,
    /// Bytes after the header.
    pub(super) stored: u32,
    /// Bytes of the content.
    pub(super) plain: u32,
    /// Number of events.
    pub(super) events: u32,
    /// Number of the first event; of any other content, of the last event before it.
    pub(super) first: u64,
    /// Number of the last event.
    pub(super) last: u64,
    /// Earliest time of an event that has one, ns; larger than `last_time` if none has.
    pub(super) first_time: u64,
    /// Latest time of one, ns.
    pub(super) last_time: u64,
    /// Checksum of the stored bytes.
    pub(super) checksum: u32,
}

impl BlockHeader {
    /// Returns the header's bytes.
    pub(super) fn bytes(&self) -> [u8; BLOCK_HEADER] {
        let mut fields = Fields::<BLOCK_HEADER>::new(&BLOCK_MAGIC);
        fields.put(&[self.content.code(), u8::from(self.is_compressed), 0, 0]);
        fields.put(&self.stored.to_le_bytes());
        fields.put(&self.plain.to_le_bytes());
        fields.put(&self.events.to_le_bytes());
        fields.put(&[0; 4]);
        for long in [self.first, self.last, self.first_time, self.last_time] {
            fields.put(&long.to_le_bytes());
        }
        fields.put(&self.checksum.to_le_bytes());
        fields.sealed()
    }

    /// Reads a header; `None` if it is none, or damaged.
    pub(super) fn read(bytes: &[u8; BLOCK_HEADER]) -> Option<Self> {
        if bytes[..4] != BLOCK_MAGIC || !is_sealed(bytes) || bytes[5] > 1 {
            return None;
        }
        let header = Self {
            content: Content::from_code(bytes[4]),
            is_compressed: bytes[5] == 1,
            stored: word(bytes, 8),
            plain: word(bytes, 12),
            events: word(bytes, 16),
            first: long(bytes, 24),
            last: long(bytes, 32),
            first_time: long(bytes, 40),
            last_time: long(bytes, 48),
            checksum: word(bytes, 56),
        };
        header.is_consistent().then_some(header)
    }

    /// Whether its sizes agree: content is compressed only where that makes it shorter.
    fn is_consistent(&self) -> bool {
        let Self { content, is_compressed, stored, plain, .. } = *self;
        plain <= content.longest() && if is_compressed { stored < plain } else { stored == plain }
    }

    /// Whether a block may stand after one whose last event has this number, 0 for the first one of a file. Within a file
    /// numbers go up, so that a reader has one block of each file in memory at most.
    pub(super) fn may_follow(&self, before: u64) -> bool {
        match self.content {
            Content::Events => self.first > before && self.last >= self.first && self.events > 0,
            Content::Checkpoint | Content::Other(_) => self.first >= before && self.last == self.first,
        }
    }
}

/// Fields of a header, one after the other, with the checksum at the end.
struct Fields<const SIZE: usize> {
    bytes: [u8; SIZE],
    at: usize,
}

impl<const SIZE: usize> Fields<SIZE> {
    fn new(magic: &[u8]) -> Self {
        let mut fields = Self { bytes: [0; SIZE], at: 0 };
        fields.put(magic);
        fields
    }

    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    fn sealed(mut self) -> [u8; SIZE] {
        let checksum = crc32fast::hash(&self.bytes[..SIZE - 4]);
        self.bytes[SIZE - 4..].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

fn is_sealed(bytes: &[u8]) -> bool {
    let end = bytes.len() - 4;
    crc32fast::hash(&bytes[..end]) == word(bytes, end)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |long| u64::from_le_bytes(*long))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> BlockHeader {
        BlockHeader {
            content: Content::Checkpoint,
            is_compressed: true,
            stored: 1,
            plain: 2,
            events: 3,
            first: 4,
            last: 5,
            first_time: 6,
            last_time: u64::MAX,
            checksum: 8,
        }
    }

    #[test]
    fn headers_are_read_back() {
        for stream in [Stream::Run, Stream::Threads, Stream::Thread(7), Stream::Cpu(255), Stream::Other(4, 1)]
        {
            let header = FileHeader::new(stream, 0x1234_5678_9abc_def0);
            assert_eq!(FileHeader::read(&header.bytes()), Ok(header));
        }
        for content in [Content::Events, Content::Checkpoint, Content::Other(2)] {
            let header = BlockHeader { content, ..block() };
            assert_eq!(BlockHeader::read(&header.bytes()), Some(header));
        }
    }

    #[test]
    fn sizes_that_do_not_agree_are_no_header() {
        let read = |header: BlockHeader| BlockHeader::read(&header.bytes());
        let events = BlockHeader { content: Content::Events, plain: LONGEST_EVENTS, ..block() };
        assert!(read(events).is_some());
        assert_eq!(read(BlockHeader { plain: LONGEST_EVENTS + 1, ..events }), None);
        assert_eq!(read(BlockHeader { plain: LONGEST_CHECKPOINT + 1, ..block() }), None);
        assert_eq!(read(BlockHeader { is_compressed: false, ..block() }), None);
        assert_eq!(read(BlockHeader { stored: 2, ..block() }), None);
    }

    #[test]
    fn numbers_go_up_within_a_file() {
        let events = BlockHeader { content: Content::Events, ..block() };
        assert!(events.may_follow(3) && !events.may_follow(4));
        assert!(!BlockHeader { last: 3, ..events }.may_follow(0));
        assert!(!BlockHeader { events: 0, ..events }.may_follow(0));
        let state = BlockHeader { last: 4, ..block() };
        assert!(state.may_follow(4) && !state.may_follow(5) && !block().may_follow(0));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let file = FileHeader::new(Stream::Cpu(3), 9).bytes();
        for at in 0..FILE_HEADER {
            let mut bytes = file;
            bytes[at] ^= 0x10;
            assert_eq!(FileHeader::read(&bytes), Err(HeaderError::Damaged), "byte {at}");
        }
        let block = block().bytes();
        for at in 0..BLOCK_HEADER {
            let mut bytes = block;
            bytes[at] ^= 0x10;
            assert_eq!(BlockHeader::read(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_newer_major_version_is_refused() {
        let header = |version| FileHeader { version, ..FileHeader::new(Stream::Run, 1) }.bytes();
        assert_eq!(FileHeader::read(&header((2, 1))), Err(HeaderError::Newer(2, 1)));
        assert!(HeaderError::Newer(2, 1).to_string().contains("2.1"));
        assert!(FileHeader::read(&header((1, 9))).is_ok());
    }
}
