//! Decompression of an archive while it is read: by no more memory than was foreseen, and to no more bytes than are allowed.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use thiserror::Error;

/// Bytes of a frame's window at most: what `zstd` uses by default, and much more than is written here.
const LARGEST_WINDOW: u64 = 8 << 20;

/// Reason why an archive is not read any further.
#[derive(Debug, Error)]
pub(super) enum FrameError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(io::Error),
    /// It ends too early.
    #[error("it is cut: its compressed data end too early")]
    Cut,
    /// It is damaged.
    #[error("its compressed data are damaged: {0}")]
    Damaged(String),
    /// It has more than is allowed.
    #[error("it unpacks to more bytes than its list of contents says")]
    TooLong,
}

/// Reader of zstd frames, one after the other.
pub(super) struct FrameReader<R> {
    source: Source<R>,
    decoder: FrameDecoder,
    /// Whether a frame was begun and is not read to its end.
    is_within: bool,
    /// Bytes that may still be read.
    allowed: u64,
}

impl<R: BufRead> FrameReader<R> {
    /// Creates a reader of frames from another one, of this many bytes at most.
    pub(super) fn new(source: R, allowed: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self { source: Source { inner: source, error: None }, decoder, is_within: false, allowed }
    }

    /// Allows this many bytes more from here on.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// When the file is damaged or has too much.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<usize, FrameError> {
        loop {
            if !self.is_within {
                if self.source.inner.fill_buf().map_err(FrameError::Read)?.is_empty() {
                    return Ok(0);
                }
                let begun = self.decoder.reset(&mut self.source);
                begun.map_err(|error| self.source.explain(&error))?;
                self.is_within = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(|error| self.source.explain(&error))?;
            }
            let length = self.decoder.read(bytes).map_err(|error| FrameError::Damaged(error.to_string()))?;
            if length > 0 {
                self.allowed = self.allowed.checked_sub(length as u64).ok_or(FrameError::TooLong)?;
                return Ok(length);
            }
            if bytes.is_empty() {
                return Ok(0);
            }
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(FrameError::Damaged("a checksum is wrong".to_owned()));
            }
            self.is_within = false;
        }
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// When the file is damaged, ends before or has too much.
    pub(super) fn read_exact(&mut self, mut bytes: &mut [u8]) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            let length = self.read(bytes)?;
            if length == 0 {
                return Err(FrameError::Cut);
            }
            bytes = &mut bytes[length..];
        }
        Ok(())
    }
}

/// Source of compressed bytes, which keeps the reason for which it failed: the decoder's own errors bury it.
struct Source<R> {
    inner: R,
    error: Option<io::Error>,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes);
        if let Err(error) = &read {
            self.error = Some(io::Error::new(error.kind(), error.to_string()));
        } else if matches!(read, Ok(0)) && !bytes.is_empty() {
            self.error = Some(io::ErrorKind::UnexpectedEof.into());
        }
        read
    }
}

impl<R> Source<R> {
    /// Returns what is after an error of the decoder.
    fn explain(&mut self, error: &impl ToString) -> FrameError {
        match self.error.take() {
            Some(source) if source.kind() == io::ErrorKind::UnexpectedEof => FrameError::Cut,
            Some(source) if source.kind() != io::ErrorKind::Interrupted => FrameError::Read(source),
            _ => FrameError::Damaged(error.to_string()),
        }
    }
}
