//! Compression of an archive while it is written.

use std::io::{self, Write};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of a part, which is a frame of its own: the compressor takes what is in memory, and no error of a file.
const PART: usize = 1 << 20;

/// Writer of zstd frames, which one after the other are what was written.
pub(super) struct FrameWriter<W> {
    inner: W,
    part: Vec<u8>,
    written: u64,
}

impl<W: Write> FrameWriter<W> {
    /// Creates a writer of frames to another one.
    pub(super) fn new(inner: W) -> Self {
        Self { inner, part: Vec::with_capacity(PART), written: 0 }
    }

    /// Writes the last frame; returns the number of compressed bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.write_part()?;
        self.inner.flush()?;
        Ok(self.written)
    }

    fn write_part(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        let frame = compress_to_vec(&self.part[..], CompressionLevel::Fastest);
        self.inner.write_all(&frame)?;
        self.written += frame.len() as u64;
        self.part.clear();
        Ok(())
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PART - self.part.len());
        self.part.extend_from_slice(&bytes[..length]);
        if self.part.len() == PART {
            self.write_part()?;
        }
        Ok(length)
    }

    /// Does nothing: frames end where their length says, whoever writes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
