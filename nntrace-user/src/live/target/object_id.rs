//! Identities of files, and states of their content.

use std::{fs::Metadata, io, os::unix::fs::MetadataExt as _, path::Path};

/// Identity of a file, whatever its path, as `stat` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl ObjectId {
    /// Returns the identity of the file at a path.
    ///
    /// # Errors
    /// When there is none.
    pub(in crate::live) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&std::fs::metadata(path)?))
    }
}

impl From<&Metadata> for ObjectId {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Size of a file, and time of its last change in seconds and nanoseconds.
pub(in crate::live) type Content = (u64, i64, i64);

/// Returns the state of a file's content.
pub(in crate::live) fn content(found: &Metadata) -> Content {
    (found.len(), found.mtime(), found.mtime_nsec())
}

/// A file with its content: it is another one once it was written to, or removed and its inode number used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    /// Identity of the file.
    pub id: ObjectId,
    /// State of its content.
    pub(in crate::live) content: Content,
}

impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        Self { id: metadata.into(), content: content(metadata) }
    }
}
