//! Identities of files.

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
