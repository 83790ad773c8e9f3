//! Identities of the files that a run probes, by which another machine, or a later day, can tell whether it has the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use object::{Object as _, ReadCache};
use serde::{Deserialize, Serialize};

use super::hex;
use crate::model::run_facts::Source;

/// Files that are remembered at most.
const MOST: usize = 1 << 12;

/// Identity of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Path, in the target's view.
    pub path: String,
    /// Bytes.
    pub bytes: u64,
    /// Time of its last change, ns since 1970.
    pub modified_ns: i64,
    /// Identity that the linker gave it, in hexadecimal digits; `None` where it has none.
    pub build_id: Option<String>,
}

impl FileIdentity {
    /// Reads the identity of a file; `None` if it cannot be read.
    #[must_use]
    pub fn read(path: &str) -> Option<Self> {
        let file = File::open(Path::new(path)).ok()?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        // Only what is looked at is read.
        let cache = ReadCache::new(file);
        let parsed = object::File::parse(&cache).ok();
        let build_id = parsed.and_then(|parsed| parsed.build_id().ok().flatten().map(hex::digits));
        Some(Self { path: path.to_owned(), bytes: metadata.len(), modified_ns: modified, build_id })
    }
}

/// Identities of the probed files of a run: each is read once, soon after it was probed.
#[derive(Debug, Default)]
pub(super) struct ProbedFiles(BTreeMap<String, Option<FileIdentity>>);

impl ProbedFiles {
    /// Returns the identities of the files of a source.
    pub(super) fn of(&mut self, source: &Source) -> Vec<FileIdentity> {
        let engines = source.engines.iter().map(|engine| &engine.file);
        let paths: BTreeSet<&String> = source.files.iter().chain(engines).collect();
        for path in paths {
            if self.0.len() < MOST && !self.0.contains_key(path) {
                self.0.insert(path.clone(), FileIdentity::read(path));
            }
        }
        self.0.values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_size_and_its_time() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let identity = FileIdentity::read(&own).unwrap();
        assert_eq!(identity.bytes, std::fs::metadata(&own).unwrap().len());
        assert!(identity.modified_ns > 1_600_000_000_000_000_000);
        assert_eq!(FileIdentity::read("/nowhere"), None);
        assert_eq!(FileIdentity::read("/"), None);
    }
}
