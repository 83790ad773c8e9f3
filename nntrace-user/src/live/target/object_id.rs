//! Identities of files, and their states.

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

/// A file with its content: it is another one once it was written to, or removed and its inode number used again, and after some
/// changes that leave the content as it is, as of the mode. Nobody can set the time back by which this is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    /// Identity of the file.
    pub id: ObjectId,
    /// Its size, bytes.
    pub size: u64,
    /// Time of its last change (`ctime`), s and ns.
    pub changed: (i64, i64),
}

impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { id: metadata.into(), size: metadata.len(), changed }
    }
}
