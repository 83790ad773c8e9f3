//! Files of a recording, read: their blocks, and what is damaged.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use memchr::memmem;
use ruzstd::decoding::StreamingDecoder;

use super::{
    error::ReadError,
    facts::Checkpoint,
    format::{
        BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, Content, EXTENSION, FILE_HEADER, FileHeader, HeaderError,
        RUN_FILE, STATES, Stream,
    },
};
use crate::{
    caller::{self, FileRights},
    model::plurals::{counted, one_or_many},
};

/// Bytes that are searched at once for the next block after a damaged one.
const CHUNK: usize = 64 << 10;

/// Files of a recording, and the places of their blocks.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    /// Number of the recording; `None` where no header can be read.
    pub(super) number: Option<u64>,
    streams: Vec<Arc<RecordedFile>>,
    /// Blocks of events, by the number of their first event.
    pub(super) blocks: Vec<Block>,
    /// Checkpoints, by the number of the last event before them.
    checkpoints: Vec<Block>,
    /// Damaged places.
    pub(super) holes: Vec<Hole>,
}

/// File of one stream.
#[derive(Debug)]
pub(super) struct RecordedFile {
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
        let mut files = Self {
            folder: folder.to_owned(),
            number: None,
            streams: Vec::new(),
            blocks: Vec::new(),
            checkpoints: Vec::new(),
            holes: Vec::new(),
        };
        // First: if the recording is being written, the other files have all events of the checkpoints that are found here.
        let run = folder.join(RUN_FILE);
        files.add(run.clone())?;
        // So do those that are listed after the states of a recording of bounded size.
        for are_states in [true, false] {
            let rights = FileRights::of_caller().map_err(error)?;
            let entries = fs::read_dir(folder).map_err(error)?;
            drop(rights);
            let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
            let mut paths = paths.map_err(error)?;
            let is_of_recording =
                |path: &Path| path.extension().is_some_and(|extension| extension == EXTENSION);
            paths.retain(|path| {
                *path != run && is_of_recording(path) && has_states(path) == are_states && path.is_file()
            });
            // Whatever order the folder has.
            paths.sort_unstable();
            for path in paths {
                match files.add(path) {
                    // It was given up meanwhile.
                    Err(ReadError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                    added => added?,
                }
            }
        }
        files.blocks.sort_by_key(|block| block.header.first);
        files.checkpoints.sort_by_key(|block| block.header.first);
        Ok(files)
    }

    fn add(&mut self, path: PathBuf) -> Result<(), ReadError> {
        let error = |source| ReadError::read(&path, source);
        let file = caller::open(&path).map_err(error)?;
        let length = file.metadata().map_err(error)?.len();
        let mut bytes = [0; FILE_HEADER];
        let header = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => FileHeader::read(&bytes),
            Err(_) => Err(HeaderError::Damaged),
        };
        let place = self.streams.len();
        let stream = match header {
            Ok(FileHeader { stream, recording, .. }) => {
                let known = *self.number.get_or_insert(recording);
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
        self.streams.push(Arc::new(RecordedFile { path, file, stream, length }));
        self.scan(place);
        Ok(())
    }

    /// Finds the blocks of a file.
    fn scan(&mut self, place: usize) {
        let file = &self.streams[place];
        let mut offset = FILE_HEADER as u64;
        let mut after = 0;
        while offset < file.length {
            let Some(header) = file.header(offset).filter(|header| header.may_follow(after)) else {
                let next = file.next_block(offset + 1, after);
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
                Content::Other(_) => {}
            }
            offset = end;
        }
    }

    /// Returns the stream of a block.
    pub(super) fn stream(&self, block: &Block) -> Stream {
        self.streams[block.file].stream
    }

    /// Returns the stream of a damaged place.
    pub(super) fn stream_of_hole(&self, hole: &Hole) -> Stream {
        self.streams[hole.file].stream
    }

    /// Returns all blocks, states of the run included.
    pub(super) fn all_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().chain(&self.checkpoints)
    }

    /// Returns the number of files and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.streams.len(), self.streams.iter().map(|file| file.length).sum())
    }

    /// Returns the name of the file of a block, without its ending.
    pub(super) fn name(&self, block: &Block) -> String {
        let stem = self.streams[block.file].path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Reads the content of a block.
    ///
    /// # Errors
    /// When it is damaged, with a text that says where.
    pub(super) fn content(&self, block: &Block) -> Result<Vec<u8>, String> {
        self.streams[block.file].content(block)
    }

    /// Returns the file of a block.
    pub(super) fn file(&self, block: &Block) -> &Arc<RecordedFile> {
        &self.streams[block.file]
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
            match self.checkpoint(block) {
                Ok(state) => last = Some((block.header.last, state)),
                Err(why) => damage.push(why),
            }
        }
        (last, damage)
    }

    /// Returns the states of the run that can be read, each with the number of the last event that it covers.
    pub(super) fn states(&self) -> impl Iterator<Item = (u64, Box<Checkpoint>)> {
        self.checkpoints.iter().filter_map(|block| Some((block.header.last, self.checkpoint(block).ok()?)))
    }

    fn checkpoint(&self, block: &Block) -> Result<Box<Checkpoint>, String> {
        Checkpoint::read(&self.content(block)?).map_err(|error| {
            let path = self.streams[block.file].path.display();
            format!("{path}: the checkpoint at byte {} cannot be read: {error}", block.offset)
        })
    }

    /// Returns how many events are in the blocks that begin with one of these numbers. A recorder ends its blocks at each state: one
    /// whose header says otherwise has its events all the same.
    pub(super) fn events_within(&self, first: u64, until: u64) -> u64 {
        let headers = self.blocks.iter().map(|block| &block.header);
        let headers = headers.filter(|header| (first..=until).contains(&header.first));
        headers.map(|header| u64::from(header.events)).sum()
    }

    /// Returns the number of the last event, whether a state covers it or not.
    pub(super) fn last_event(&self) -> u64 {
        self.blocks.iter().map(|block| block.header.last).max().unwrap_or(0)
    }

    /// Returns the number of the last event to be shown beside a state, which covers the events up to a number: where the
    /// recorder was killed, later ones are there.
    pub(super) fn last_event_with(&self, state: &Checkpoint, covered: u64) -> u64 {
        if state.is_last { covered } else { self.last_event().max(covered) }
    }

    /// Describes a damaged place.
    fn describe(&self, hole: &Hole) -> String {
        let path = self.streams[hole.file].path.display();
        let Hole { offset, length, kind, .. } = hole;
        let (bytes, are) = (counted(*length, "byte"), one_or_many(*length, "is", "are"));
        match kind {
            HoleKind::FileHeader => {
                format!(
                    "{path}: the header of the file, from byte 0 on, is damaged; its name shows what it holds"
                )
            }
            HoleKind::Header => format!("{path}: {bytes} from byte {offset} on {are} damaged"),
            HoleKind::Cut => format!(
                "{path}: the file ends within a block, of which {bytes} from byte {offset} on {are} there"
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

    /// Returns the offset of the first intact header from an offset on, of a block after this number.
    fn next_block(&self, mut offset: u64, after: u64) -> Option<u64> {
        let begins_at = |offset: &u64| self.header(*offset).is_some_and(|header| header.may_follow(after));
        let mut chunk = vec![0; CHUNK];
        while offset < self.length {
            let length = CHUNK.min(usize::try_from(self.length - offset).unwrap_or(CHUNK));
            let chunk = &mut chunk[..length];
            self.file.read_exact_at(chunk, offset).ok()?;
            let mut found = memmem::find_iter(chunk, &BLOCK_MAGIC).map(|at| offset + at as u64);
            if let Some(found) = found.find(begins_at) {
                return Some(found);
            }
            // A magic may lie across two chunks.
            offset += length.saturating_sub(BLOCK_MAGIC.len() - 1).max(1) as u64;
        }
        None
    }

    /// Reads the content of a block.
    ///
    /// # Errors
    /// When it is damaged, with a text that says where.
    pub(super) fn content(&self, block: &Block) -> Result<Vec<u8>, String> {
        self.read_content(block).map_err(|why| {
            format!("{}: the block at byte {} is damaged ({why})", self.path.display(), block.offset)
        })
    }

    fn read_content(&self, block: &Block) -> Result<Vec<u8>, String> {
        let BlockHeader { stored, plain, checksum, is_compressed, .. } = block.header;
        let mut bytes = vec![0; stored as usize];
        let read = self.file.read_exact_at(&mut bytes, block.offset + BLOCK_HEADER as u64);
        read.map_err(|error| error.to_string())?;
        if crc32fast::hash(&bytes) != checksum {
            return Err("its checksum is wrong".into());
        }
        if is_compressed {
            let window = u64::from(block.header.content.longest());
            let decoder = StreamingDecoder::new_with_max_window_size(bytes.as_slice(), window);
            let decoder = decoder.map_err(|error| error.to_string())?;
            // As it comes, not as the header promises; and no more than that.
            let mut content = Vec::new();
            let read = decoder.take(u64::from(plain) + 1).read_to_end(&mut content);
            read.map_err(|error| error.to_string())?;
            bytes = content;
        }
        if bytes.len() == plain as usize {
            Ok(bytes)
        } else {
            Err(format!("it has {} bytes, not {plain}", bytes.len()))
        }
    }
}

/// Returns the name of a file without its ending and the number of its segment.
fn name_without_segment(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match stem.rsplit_once('.') {
        Some((name, number)) if number.parse::<u32>().is_ok() => name.to_owned(),
        _ => stem.into_owned(),
    }
}

/// Whether a file has states of a recording of bounded size.
fn has_states(path: &Path) -> bool {
    name_without_segment(path) == STATES
}

/// Returns the stream that the file of this name has, as far as names show it.
fn stream_by_name(path: &Path) -> Stream {
    let name = name_without_segment(path);
    if path.file_name().is_some_and(|name| name == RUN_FILE) || has_states(path) {
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
            Self::Other(kind, number) => write!(formatter, "{number} of kind {kind}"),
        }
    }
}

#[cfg(test)]
mod tests;
