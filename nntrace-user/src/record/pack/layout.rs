//! Layout of a pack: names of its entries, its list of contents, and the map of files. `docs/packs.md` describes them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::record::format::EXTENSION;

/// Text by which a list of contents is known to be one.
pub(crate) const KIND: &str = "nntrace-bpf pack";
/// Version that is written, and the newest one that is read.
pub(crate) const VERSION: u32 = 1;
/// Name of the first entry: the list of contents.
pub(crate) const CONTENTS: &str = "contents.json";
/// Bytes of the list of contents at most.
pub(crate) const LONGEST_CONTENTS: u64 = 64 << 20;
/// Name of the map of files.
pub(crate) const FILE_MAP: &str = "replay_file_map.json";
/// Name of the list of files in a recording.
pub(crate) const FILE_LIST: &str = "files.json";
/// Folder of the recording's files. Unpacked, they are at the top.
pub(crate) const RECORDING: &str = "recording/";
/// Folder of the files that the run used.
pub(crate) const FILES: &str = "files/";
/// Bytes of a block in the archive: of a header, and of the unit in which contents are stored.
pub(crate) const BLOCK: u64 = 512;
/// Bytes of zeros at the end of the archive.
pub(crate) const END: u64 = 2 * BLOCK;

/// List of contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// [`KIND`].
    pub(crate) kind: String,
    /// [`VERSION`].
    pub(crate) version: u32,
    /// Version of the program that packed.
    pub(crate) tool: String,
    /// Entries after this list, in their order.
    pub(crate) entries: Vec<Entry>,
}

/// Entry of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Name.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    /// SHA-256 of the content, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// Map from the paths of files to their copies in a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileMap {
    /// [`VERSION`].
    pub(crate) version: u32,
    /// Files: the executable first, others in the order of their first use.
    pub(crate) files: Vec<MappedFile>,
}

/// File that the run used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MappedFile {
    /// Path by which it was used.
    pub(crate) path: String,
    /// Name of the entry that has its content; `None` when it was left out.
    pub(crate) packed: Option<String>,
    /// SHA-256 of the packed content.
    pub(crate) sha256: Option<String>,
    /// Bytes of the packed content.
    pub(crate) size: Option<u64>,
    /// Whether the packed content is another one than that of the run; `None` where that is not known.
    pub(crate) changed: Option<bool>,
    /// Reason why it was left out.
    pub(crate) reason: Option<String>,
}

/// Returns the place of an entry in the unpacked folder; `None` for a name that no entry has.
pub(crate) fn place(name: &str) -> Option<&str> {
    if name == FILE_MAP {
        return Some(name);
    }
    if let Some(file) = name.strip_prefix(RECORDING) {
        let is_part = file == FILE_LIST || Path::new(file).extension().is_some_and(|it| it == EXTENSION);
        return (is_part && is_plain(file)).then_some(file);
    }
    name.strip_prefix(FILES).filter(|file| is_plain(file)).map(|_| name)
}

/// Whether a name is that of a file in a folder, and of no other place.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/') && !name.contains(char::is_control)
}

/// Returns the number of zeros after a content of this size, up to the next block.
pub(crate) const fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK
}

/// Returns a digest in hexadecimal digits.
pub(crate) fn hex(digest: Sha256) -> String {
    format!("{:x}", digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_places() {
        for (name, expected) in [
            ("recording/run.nnt", "run.nnt"),
            ("recording/main_0.nnt", "main_0.nnt"),
            ("recording/files.json", "files.json"),
            ("replay_file_map.json", "replay_file_map.json"),
            ("files/0_app", "files/0_app"),
            ("files/12_..so", "files/12_..so"),
        ] {
            assert_eq!(place(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn other_places_have_no_entry() {
        for name in [
            "",
            "run.nnt",
            "/etc/passwd",
            "../x.nnt",
            "recording/",
            "recording/../x.nnt",
            "recording/a/b.nnt",
            "recording//b.nnt",
            "recording/.nnt",
            "recording/x.sh",
            "recording/replay_file_map.json",
            "recording/x\n.nnt",
            "files",
            "files/",
            "files/.",
            "files/..",
            "files/../run.nnt",
            "files//etc/passwd",
            "files/a\u{1b}[2J",
            "files/a\u{85}",
            "files/a\0b",
            "./files/a",
        ] {
            assert_eq!(place(name), None, "{name:?}");
        }
    }
}
