//! A file that is read at several places at once.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    sync::Arc,
};

/// A file with a place of its own in it.
#[derive(Debug)]
pub(crate) struct FileCursor {
    /// The file; others that read it do not disturb.
    pub file: Arc<File>,
    /// Where the next read begins.
    pub offset: u64,
}

impl Read for FileCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
