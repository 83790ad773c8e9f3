//! Probed files, watched for changes of their content.
//!
//! The kernel keeps the instruction that was at the place of a probe, and puts the breakpoint into every process that maps
//! the file later. Where another content has been written into the file meanwhile, that process would run the old
//! instruction in the place of the new one.

use std::{
    fs::File,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use crate::live::target::{Content, ObjectId, PinnedFile, content, present_name};

/// Files that are probed.
#[derive(Default)]
pub(super) struct ProbedFiles(Vec<ProbedFile>);

struct ProbedFile {
    id: ObjectId,
    /// The file itself, whatever its path leads to later.
    file: File,
    content: Content,
}

impl ProbedFiles {
    /// Adds a file that is about to be probed, with the content that was examined, if it is not there yet.
    pub(super) fn add(&mut self, pinned: &PinnedFile) {
        if self.0.iter().any(|known| known.id == pinned.id()) {
            return;
        }
        // What cannot be opened cannot be probed.
        if let Ok(file) = File::open(&**pinned) {
            self.0.push(ProbedFile { id: pinned.id(), file, content: pinned.content() });
        }
    }

    /// Removes the files whose content has changed, and returns them with their present names.
    pub(super) fn take_changed(&mut self) -> Vec<(ObjectId, PathBuf)> {
        let is_same = |known: &mut ProbedFile| {
            known.file.metadata().is_ok_and(|found| content(&found) == known.content)
        };
        let changed = self.0.extract_if(.., |known| !is_same(known));
        let name = |file: &File| present_name(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
        changed.map(|known| (known.id, name(&known.file))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_written_to_has_changed_and_one_that_is_replaced_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut files = ProbedFiles::default();
        for name in ["same", "longer", "replaced", "gone"] {
            fs::write(path(name), "content").unwrap();
            let pinned = PinnedFile::at(&path(name)).unwrap();
            files.add(&pinned);
            files.add(&pinned);
        }
        assert_eq!(files.0.len(), 4);
        assert!(files.take_changed().is_empty());
        fs::write(path("longer"), "another content").unwrap();
        fs::write(path("new"), "another content").unwrap();
        fs::rename(path("new"), path("replaced")).unwrap();
        fs::remove_file(path("gone")).unwrap();
        let names: Vec<PathBuf> = files.take_changed().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, [path("longer")]);
        assert!(files.take_changed().is_empty());
        // Written to between a look into it and the probe.
        let examined = PinnedFile::at(&path("same")).unwrap();
        let mut files = ProbedFiles::default();
        fs::write(path("same"), "another content").unwrap();
        files.add(&examined);
        assert_eq!(files.take_changed().len(), 1);
    }
}
