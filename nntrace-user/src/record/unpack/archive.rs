//! Entries of an archive: of all that tar has, plain files only.

use std::io::{self, BufRead};

use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use super::frames::{FrameError, FrameReader};
use crate::record::pack::layout::{self, hex};

/// Bytes of a header.
const BLOCK: usize = layout::BLOCK as usize;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// Place of the checksum in a header.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Reason why an archive is not read any further.
#[derive(Debug)]
pub(super) enum Damage {
    /// The file cannot be read.
    Read(io::Error),
    /// Its content is not that of a pack.
    Other(String),
}

impl From<FrameError> for Damage {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Read(source) => Self::Read(source),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Archive that is being read.
pub(super) struct Archive<R> {
    frames: FrameReader<R>,
}

impl<R: BufRead> Archive<R> {
    /// Creates an archive from its compressed bytes; it may have this many uncompressed ones.
    pub(super) fn new(source: R, allowed: u64) -> Self {
        Self { frames: FrameReader::new(source, allowed) }
    }

    /// Allows this many bytes from here on.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.frames.allow(bytes);
    }

    /// Reads the next header: the name and the size of an entry; `None` at the end of the archive, which is that of the file,
    /// too.
    ///
    /// # Errors
    /// When the archive is damaged, or the entry is no plain file.
    pub(super) fn next_entry(&mut self) -> Result<Option<(String, u64)>, Damage> {
        let block = self.block()?;
        if block == [0; BLOCK] {
            let end = self.block()?;
            if end != [0; BLOCK] || self.frames.read(&mut [0])? > 0 {
                return Err(Damage::Other("something follows its end".to_owned()));
            }
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block);
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let spaces = CHECKSUM.len() as u32 * u32::from(b' ');
        let checksum = sum(&block) - sum(&block[CHECKSUM]) + spaces;
        let is_intact = header.cksum().is_ok_and(|stored| stored == checksum);
        let (true, Some(ustar)) = (is_intact, header.as_ustar()) else {
            return Err(Damage::Other("the header of an entry is damaged".to_owned()));
        };
        let name = ustar.path_bytes();
        let Ok(name) = std::str::from_utf8(&name) else {
            let name = String::from_utf8_lossy(&name);
            return Err(Damage::Other(format!("the name of its entry {name:?} is no text")));
        };
        let kind = match header.entry_type() {
            EntryType::Regular => {
                let size = header.size();
                let size = size.map_err(|_| Damage::Other(format!("the size of {name:?} is damaged")))?;
                return Ok(Some((name.to_owned(), size)));
            }
            EntryType::Link | EntryType::Symlink => "a link",
            EntryType::Directory => "a folder",
            EntryType::Block | EntryType::Char | EntryType::Fifo => "a device or a pipe",
            _ => "no plain file",
        };
        Err(Damage::Other(format!("its entry {name:?} is {kind}")))
    }

    /// Reads a content of this size to the begin of the next header; returns its digest. The consumer may end it early.
    ///
    /// # Errors
    /// When the archive is damaged, or the consumer ends it.
    pub(super) fn content(
        &mut self,
        size: u64,
        mut consumer: impl FnMut(&[u8]) -> Result<(), ()>,
    ) -> Result<String, Damage> {
        let mut digest = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        let mut left = size;
        while left > 0 {
            let length = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
            let chunk = &mut chunk[..length];
            self.frames.read_exact(chunk)?;
            digest.update(&*chunk);
            consumer(chunk).map_err(|()| Damage::Other("it is not read any further".to_owned()))?;
            left -= length as u64;
        }
        let padding = &mut chunk[..layout::padding(size) as usize];
        self.frames.read_exact(padding)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(Damage::Other("something is behind the content of an entry".to_owned()));
        }
        Ok(hex(digest))
    }

    fn block(&mut self) -> Result<[u8; BLOCK], FrameError> {
        let mut block = [0; BLOCK];
        self.frames.read_exact(&mut block)?;
        Ok(block)
    }
}
