//! File that is read at several places at once.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    sync::Arc,
};

/// Cursor in a shared file.
#[derive(Debug)]
pub(crate) struct FileCursor {
    /// Shared file, whose own position is not used.
    pub file: Arc<File>,
    /// Offset of the next read.
    pub offset: u64,
}

impl Read for FileCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
