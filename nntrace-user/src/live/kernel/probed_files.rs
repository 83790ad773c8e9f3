//! Probed files, watched for changes of their content.
//!
//! The kernel keeps the instruction that was at the place of a probe, and puts the breakpoint into every process that maps
//! the file later. Where another content has been written into the file meanwhile, that process would run the old
//! instruction in the place of the new one.

use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Size, and time of the last change in seconds and nanoseconds.
type Content = (u64, i64, i64);

/// Files that are probed.
#[derive(Default)]
pub(super) struct ProbedFiles(Vec<ProbedFile>);

struct ProbedFile {
    path: PathBuf,
    /// The file itself, whatever its path leads to later.
    file: File,
    content: Content,
}

impl ProbedFiles {
    /// Adds a file that is about to be probed, if it is not there yet.
    pub(super) fn add(&mut self, path: &Path) {
        if self.0.iter().any(|known| known.path == path) {
            return;
        }
        // What cannot be opened cannot be probed.
        if let Ok(file) = File::open(path)
            && let Ok(content) = content(&file)
        {
            self.0.push(ProbedFile { path: path.to_owned(), file, content });
        }
    }

    /// Removes the files whose content has changed, and returns their paths.
    pub(super) fn take_changed(&mut self) -> Vec<PathBuf> {
        let is_same = |known: &mut ProbedFile| content(&known.file).is_ok_and(|now| now == known.content);
        self.0.extract_if(.., |known| !is_same(known)).map(|known| known.path).collect()
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
        assert_eq!(files.take_changed(), [path("longer")]);
        assert!(files.take_changed().is_empty());
    }
}
