//! Names of the files beside one that is examined, which may say its version.

use std::{fs, path::Path};

/// Folders above a file whose names are read.
pub(in crate::live) const LEVELS: usize = 4;
/// Names of a folder that are read at most.
const MOST_NAMES: usize = 4096;

/// Folders that a file is in.
pub(in crate::live) trait Folders {
    /// Returns the names in the folder that is this many levels above the one that the file is in; empty if it does not
    /// exist, cannot be read, or is more than [`LEVELS`] up.
    fn names(&self, level: usize) -> Vec<String>;
}

/// Folders of the file that was found at this path.
pub(in crate::live) struct FoldersOf<'path>(pub(in crate::live) &'path Path);

impl Folders for FoldersOf<'_> {
    fn names(&self, level: usize) -> Vec<String> {
        let Some(folder) = self.0.ancestors().skip(1).take(LEVELS).nth(level) else { return Vec::new() };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.take(MOST_NAMES).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}
