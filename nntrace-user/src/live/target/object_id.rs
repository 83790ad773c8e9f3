//! Identities of files, and their states.

use std::{collections::HashMap, fs::Metadata, io, os::unix::fs::MetadataExt as _, path::Path};

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

/// A file and its content. It differs after a write, when the inode number is used again, and after some changes that leave the
/// content alone, such as chmod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    /// Identity of the file.
    pub id: ObjectId,
    /// Its size, bytes.
    pub size: u64,
    /// Time of its last change (`ctime`, which no ordinary user can set), s and ns.
    pub changed: (i64, i64),
}

impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { id: metadata.into(), size: metadata.len(), changed }
    }
}

/// Maximum number of states of a file that count as new: JIT compilers keep appending to files that they map.
const MOST_STATES: u32 = 100;

/// Files that were seen, each with its last state and the number of its states.
#[derive(Debug, Default)]
pub(crate) struct SeenFiles(HashMap<ObjectId, (FileState, u32)>);

impl SeenFiles {
    /// Takes note of a file; returns whether it is new, or in another state than before.
    pub(crate) fn is_new(&mut self, file: FileState) -> bool {
        let (state, count) = self.0.entry(file.id).or_insert((file, 0));
        let is_new = *count == 0 || (*state != file && *count < MOST_STATES);
        if is_new {
            *state = file;
            *count += 1;
        }
        is_new
    }

    /// Whether it was seen in this state.
    pub(crate) fn has(&self, file: FileState) -> bool {
        self.0.get(&file.id).is_some_and(|(state, count)| *state == file || *count >= MOST_STATES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_new_in_each_of_its_first_states() {
        let file = |inode, size| FileState { id: ObjectId { device: 1, inode }, size, changed: (0, 0) };
        let mut seen = SeenFiles::default();
        assert!(!seen.has(file(1, 0)));
        for size in 0..u64::from(MOST_STATES) {
            assert!(seen.is_new(file(1, size)) && !seen.is_new(file(1, size)) && seen.has(file(1, size)));
        }
        assert!(!seen.is_new(file(1, 1_000)) && seen.has(file(1, 1_000)));
        assert!(seen.is_new(file(2, 0)));
    }
}
