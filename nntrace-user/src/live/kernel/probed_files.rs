//! Probed files, watched for changes of their content.
//!
//! The kernel keeps the instruction that was at the place of a probe, and puts the breakpoint into every process that maps
//! the file later. Where another content has been written into the file meanwhile, that process would run the old
//! instruction in the place of the new one.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use nix::libc;

use crate::live::target::{ObjectId, present_name};

/// Size, and time of the last change in seconds and nanoseconds.
type Content = (u64, i64, i64);

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
    /// Adds a file that is about to be probed, if it is not there yet.
    pub(super) fn add(&mut self, path: &Path) {
        // What cannot be opened cannot be probed. A pipe would wait for a writer.
        if let Ok(file) = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
            && let Ok(found) = file.metadata()
            && let id = ObjectId::from(&found)
            && self.0.iter().all(|known| known.id != id)
            && let Ok(content) = content(&file)
        {
            self.0.push(ProbedFile { id, file, content });
        }
    }

    /// Removes the files whose content has changed, and returns them with their present names.
    pub(super) fn take_changed(&mut self) -> Vec<(ObjectId, PathBuf)> {
        let is_same = |known: &mut ProbedFile| content(&known.file).is_ok_and(|now| now == known.content);
        let changed = self.0.extract_if(.., |known| !is_same(known));
        let name = |file: &File| present_name(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
        changed.map(|known| (known.id, name(&known.file))).collect()
    }
}

fn content(file: &File) -> io::Result<Content> {
    let found = file.metadata()?;
    Ok((found.len(), found.mtime(), found.mtime_nsec()))
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
            files.add(&path(name));
            files.add(&path(name));
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
    }
}
