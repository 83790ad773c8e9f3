//! Files by path, packed reproducibly.

use std::{collections::BTreeMap, io::Write as _};

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};

/// Files, and the folders that contain them.
pub struct Tree {
    files: BTreeMap<String, (Vec<u8>, bool)>,
    time: u64,
}

impl Tree {
    /// Creates an empty tree, whose files are dated `time`, seconds.
    pub const fn new(time: u64) -> Self {
        Self { files: BTreeMap::new(), time }
    }

    /// Adds a file. Its path has no leading slash.
    pub fn add(&mut self, path: String, content: &[u8], executable: bool) {
        self.files.insert(path, (content.to_vec(), executable));
    }

    /// Returns all files with their contents, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, (content, _))| (path.as_str(), content.as_slice()))
    }

    /// Packs the files into a tar archive compressed with gzip. All files belong to root.
    pub fn packed(&self) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut folder = String::new();
        for (path, (content, executable)) in &self.files {
            for (end, _) in path.match_indices('/') {
                let parent = &path[..=end];
                if !folder.starts_with(parent) {
                    archive.append_data(
                        &mut self.header(tar::EntryType::Directory, 0o755, 0),
                        parent,
                        &[][..],
                    )?;
                    parent.clone_into(&mut folder);
                }
            }
            let mode = if *executable { 0o755 } else { 0o644 };
            let mut header = self.header(tar::EntryType::Regular, mode, content.len() as u64);
            archive.append_data(&mut header, path, content.as_slice())?;
        }
        gzip(&archive.into_inner()?)
    }

    fn header(&self, kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(self.time);
        header.set_uid(0);
        header.set_gid(0);
        header
    }
}

/// Compresses without a name and a time in the header.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn folders_come_once_and_before_what_is_in_them() {
        let pack = |names: &[&str]| {
            let mut tree = Tree::new(7);
            for name in names {
                tree.add((*name).to_owned(), name.as_bytes(), false);
            }
            tree.packed().unwrap()
        };
        let packed = pack(&["a/b/1", "a/c", "a/b/2"]);
        assert_eq!(packed, pack(&["a/c", "a/b/2", "a/b/1"]), "the order does not matter");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                assert_eq!(entry.header().mtime().unwrap(), 7);
                let path = entry.path().unwrap().to_string_lossy().into_owned();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                assert!(text.is_empty() || text == path);
                path
            })
            .collect();
        assert_eq!(paths, ["a/", "a/b/", "a/b/1", "a/b/2", "a/c"]);
    }
}
