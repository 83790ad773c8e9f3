//! Files of a recording, read: their blocks, and what is damaged.

use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use memchr::memmem;
use ruzstd::decoding::FrameDecoder;

use super::{
    error::ReadError,
    facts::Checkpoint,
    format::{
        BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, Content, EXTENSION, FILE_HEADER, FileHeader, HeaderError,
        LONGEST_CONTENT, RUN_FILE, Stream,
    },
};

/// Bytes that are searched at once for the next block behind a damaged one.
const CHUNK: usize = 64 << 10;

/// Files of a recording, and the places of their blocks.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    files: Vec<RecordedFile>,
    /// Blocks of events, by the number of their first event.
    pub(super) blocks: Vec<Block>,
    /// Checkpoints, by the number of the last event before them.
    checkpoints: Vec<Block>,
    /// Damaged places.
    pub(super) holes: Vec<Hole>,
}

/// File of one stream.
#[derive(Debug)]
struct RecordedFile {
    path: PathBuf,
    file: File,
    stream: Stream,
    length: u64,
}

/// Place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    file: usize,
    /// Offset of its header.
    offset: u64,
    /// Its header.
    pub(super) header: BlockHeader,
}

/// Place where a file is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    file: usize,
    offset: u64,
    /// Bytes up to the next readable place.
    length: u64,
    /// Number of the last event before it in its file.
    pub(super) after: u64,
    kind: HoleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoleKind {
    /// Header of the file.
    FileHeader,
    /// Header of a block, and its content with it.
    Header,
    /// End of a file within a block.
    Cut,
}

impl Files {
    /// Opens the files of a recording and finds their blocks.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or is of a newer version.
    pub(super) fn open(folder: &Path) -> Result<Self, ReadError> {
        let error = |source| ReadError::read(folder, source);
        let entries = fs::read_dir(folder).map_err(error)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
        let mut paths = paths.map_err(error)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        // Whatever order the folder has.
        paths.sort_unstable();
        let mut files = Self {
            folder: folder.to_owned(),
            files: Vec::new(),
            blocks: Vec::new(),
            checkpoints: Vec::new(),
            holes: Vec::new(),
        };
        let mut number = None;
        for path in paths {
            files.add(path, &mut number)?;
        }
        files.blocks.sort_by_key(|block| block.header.first);
        files.checkpoints.sort_by_key(|block| block.header.first);
        Ok(files)
    }

    fn add(&mut self, path: PathBuf, number: &mut Option<u64>) -> Result<(), ReadError> {
        let error = |source| ReadError::read(&path, source);
        let file = File::open(&path).map_err(error)?;
        let length = file.metadata().map_err(error)?.len();
        let mut bytes = [0; FILE_HEADER];
        let header = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => FileHeader::read(&bytes),
            Err(_) => Err(HeaderError::Damaged),
        };
        let place = self.files.len();
        let stream = match header {
            Ok(FileHeader { stream, recording, .. }) => {
                let known = *number.get_or_insert(recording);
                if known != recording {
                    let reason = "it is of another recording than the files before it: remove it".to_owned();
                    return Err(ReadError::Version { path, reason });
                }
                stream
            }
            Err(HeaderError::Damaged) => {
                let length = length.min(FILE_HEADER as u64);
                self.holes.push(Hole {
                    file: place,
                    offset: 0,
                    length,
                    after: 0,
                    kind: HoleKind::FileHeader,
                });
                stream_by_name(&path)
            }
            Err(newer) => return Err(ReadError::Version { path, reason: newer.to_string() }),
        };
        self.files.push(RecordedFile { path, file, stream, length });
        self.scan(place);
        Ok(())
    }

    /// Finds the blocks of a file.
    fn scan(&mut self, place: usize) {
        let file = &self.files[place];
        let mut offset = FILE_HEADER as u64;
        let mut after = 0;
        while offset < file.length {
            let Some(header) = file.header(offset) else {
                let next = file.next_block(offset + 1);
                let is_cut = next.is_none() && file.length - offset < BLOCK_HEADER as u64;
                let kind = if is_cut { HoleKind::Cut } else { HoleKind::Header };
                let end = next.unwrap_or(file.length);
                self.holes.push(Hole { file: place, offset, length: end - offset, after, kind });
                offset = end;
                continue;
            };
            let end = offset + BLOCK_HEADER as u64 + u64::from(header.stored);
            if end > file.length {
                self.holes.push(Hole {
                    file: place,
                    offset,
                    length: file.length - offset,
                    after,
                    kind: HoleKind::Cut,
                });
                break;
            }
            after = header.last;
            let block = Block { file: place, offset, header };
            match header.content {
                Content::Events => self.blocks.push(block),
                Content::Checkpoint => self.checkpoints.push(block),
            }
            offset = end;
        }
    }

    /// Returns the stream of a block.
    pub(super) fn stream(&self, block: &Block) -> Stream {
        self.files[block.file].stream
    }

    /// Returns the stream of a damaged place.
    pub(super) fn stream_of_hole(&self, hole: &Hole) -> Stream {
        self.files[hole.file].stream
    }

    /// Returns the number of files and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.files.len(), self.files.iter().map(|file| file.length).sum())
    }

    /// Returns the name of the file of a block, without its ending.
    pub(super) fn name(&self, block: &Block) -> String {
        let stem = self.files[block.file].path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Reads the content of a block.
    ///
    /// # Errors
    /// When it is damaged, with a text that says where.
    pub(super) fn content(&self, block: &Block) -> Result<Vec<u8>, String> {
        let file = &self.files[block.file];
        file.content(block).map_err(|why| {
            format!("{}: the block at byte {} is damaged ({why})", file.path.display(), block.offset)
        })
    }

    /// Returns the last state of the run that can be read, the number of the last event that it covers, and texts on states
    /// that cannot be read.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn state(&self) -> Result<(u64, Box<Checkpoint>, Vec<String>), ReadError> {
        let (state, damage) = self.last_checkpoint();
        let (until, state) = state.ok_or_else(|| ReadError::NoCheckpoint { path: self.folder.clone() })?;
        Ok((until, state, damage))
    }

    fn last_checkpoint(&self) -> (Option<(u64, Box<Checkpoint>)>, Vec<String>) {
        let mut damage: Vec<String> = self.holes.iter().map(|hole| self.describe(hole)).collect();
        let mut last = None;
        for block in self.checkpoints.iter().rev() {
            if last.is_some() {
                // Not needed, but somebody should know that it is damaged.
                damage.extend(self.content(block).err());
                continue;
            }
            let read = self.content(block).and_then(|content| {
                serde_json::from_slice(&content).map_err(|error| {
                    let path = self.files[block.file].path.display();
                    format!("{path}: the checkpoint at byte {} cannot be read: {error}", block.offset)
                })
            });
            match read {
                Ok(state) => last = Some((block.header.last, state)),
                Err(why) => damage.push(why),
            }
        }
        (last, damage)
    }

    /// Returns the number of the last event, whether a state covers it or not.
    pub(super) fn last_event(&self) -> u64 {
        self.blocks.iter().map(|block| block.header.last).max().unwrap_or(0)
    }

    /// Describes a damaged place.
    fn describe(&self, hole: &Hole) -> String {
        let path = self.files[hole.file].path.display();
        let Hole { offset, length, kind, .. } = hole;
        match kind {
            HoleKind::FileHeader => {
                format!(
                    "{path}: the header of the file, from byte 0 on, is damaged; its name shows what it holds"
                )
            }
            HoleKind::Header => format!("{path}: {length} bytes from byte {offset} on are damaged"),
            HoleKind::Cut => format!(
                "{path}: the file ends within a block, of which {length} bytes from byte {offset} on are there"
            ),
        }
    }
}

impl Hole {
    /// Whether events may have been lost by it.
    pub(super) fn loses_events(&self) -> bool {
        self.kind != HoleKind::FileHeader
    }
}

impl RecordedFile {
    fn header(&self, offset: u64) -> Option<BlockHeader> {
        let mut bytes = [0; BLOCK_HEADER];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        BlockHeader::read(&bytes)
    }

    /// Returns the offset of the first intact header from an offset on.
    fn next_block(&self, mut offset: u64) -> Option<u64> {
        let mut chunk = vec![0; CHUNK];
        while offset < self.length {
            let length = CHUNK.min(usize::try_from(self.length - offset).unwrap_or(CHUNK));
            let chunk = &mut chunk[..length];
            self.file.read_exact_at(chunk, offset).ok()?;
            let found = memmem::find_iter(chunk, &BLOCK_MAGIC).map(|at| offset + at as u64);
            if let Some(found) = found.into_iter().find(|at| self.header(*at).is_some()) {
                return Some(found);
            }
            // A magic may lie across two chunks.
            offset += length.saturating_sub(BLOCK_MAGIC.len() - 1).max(1) as u64;
        }
        None
    }

    fn content(&self, block: &Block) -> Result<Vec<u8>, String> {
        let BlockHeader { stored, plain, checksum, is_compressed, .. } = block.header;
        let mut bytes = vec![0; stored as usize];
        let read = self.file.read_exact_at(&mut bytes, block.offset + BLOCK_HEADER as u64);
        read.map_err(|error| error.to_string())?;
        if crc32fast::hash(&bytes) != checksum {
            return Err("its checksum is wrong".into());
        }
        if is_compressed {
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(u64::from(LONGEST_CONTENT));
            let mut content = Vec::new();
            content.reserve_exact(plain as usize);
            decoder.decode_all_to_vec(&bytes, &mut content).map_err(|error| error.to_string())?;
            bytes = content;
        }
        if bytes.len() == plain as usize {
            Ok(bytes)
        } else {
            Err(format!("it has {} bytes, not {plain}", bytes.len()))
        }
    }
}

/// Returns the stream that the file of this name has, as far as names show it.
fn stream_by_name(path: &Path) -> Stream {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // Without the number of a segment.
    let name = match stem.rsplit_once('.') {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => &stem,
    };
    if path.file_name().is_some_and(|name| name == RUN_FILE) {
        Stream::Run
    } else if let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
        Stream::Cpu(cpu)
    } else if name == "threads" {
        Stream::Threads
    } else {
        Stream::Thread(u32::MAX)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => formatter.write_str("run"),
            Self::Threads => formatter.write_str("threads"),
            Self::Thread(number) => write!(formatter, "thread {number}"),
            Self::Cpu(cpu) => write!(formatter, "CPU {cpu}"),
        }
    }
}
