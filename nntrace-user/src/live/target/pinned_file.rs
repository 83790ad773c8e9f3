//! Files held by a descriptor while they are examined and probed, whatever happens to their names.
//!
//! The files belong to others, who may put another one in the place of theirs at any moment: were a file examined by its name and
//! probed by it, a breakpoint could get into any byte of a file of somebody else. So a file is found once, and reached by a
//! descriptor from then on. The descriptor can neither read nor write (`O_PATH`): no device is touched by it, and no pipe waited for.

use std::{
    fs::{self, Metadata, OpenOptions},
    io,
    ops::Deref,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::libc;

use super::object_id::{FileState, ObjectId};

/// Folder of the descriptors that this process has open.
const OPEN_FILES: &str = "/proc/self/fd";

/// Size of a file, and time of its last modification in seconds and nanoseconds.
pub(in crate::live) type Content = (u64, i64, i64);

/// File that is reached by a descriptor, whatever happens to its name. It dereferences to a path that is valid while a clone of it
/// exists.
#[derive(Clone, Debug)]
pub(crate) struct PinnedFile {
    state: FileState,
    content: Content,
    path: PathBuf,
    name: PathBuf,
    _descriptor: Arc<OwnedFd>,
}

impl PinnedFile {
    /// Finds the file at a path.
    ///
    /// # Errors
    /// When there is none, or it is not a regular file.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self {
            state: FileState::from(&found),
            content: content(&found),
            path: Path::new(OPEN_FILES).join(file.as_raw_fd().to_string()),
            name: path.to_owned(),
            _descriptor: Arc::new(file.into()),
        })
    }

    /// Returns the path at which it was found: by now another file may be there.
    pub(in crate::live) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the state of its content when it was found.
    pub(in crate::live) const fn content(&self) -> Content {
        self.content
    }

    /// Returns the identity of the file.
    pub(crate) const fn id(&self) -> ObjectId {
        self.state.id
    }

    /// Returns the state in which the file was found.
    pub(super) const fn state(&self) -> FileState {
        self.state
    }
}

impl Deref for PinnedFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Compares the files, not the descriptors.
impl PartialEq for PinnedFile {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for PinnedFile {}

/// Returns the state of a file's content.
pub(in crate::live) fn content(found: &Metadata) -> Content {
    (found.len(), found.mtime(), found.mtime_nsec())
}

/// Returns the present name of a file that is reached by a descriptor of this process; of any other, its path.
pub(in crate::live) fn present_name(path: &Path) -> PathBuf {
    let is_descriptor = path.parent() == Some(Path::new(OPEN_FILES));
    is_descriptor.then(|| fs::read_link(path).ok()).flatten().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn a_file_stays_the_same_when_another_one_takes_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "first").unwrap();
        fs::write(path("b"), "second").unwrap();
        let pinned = PinnedFile::at(&path("a")).unwrap();
        fs::rename(path("b"), path("a")).unwrap();
        assert_eq!(fs::read_to_string(&*pinned).unwrap(), "first");
        assert_eq!(pinned, pinned.clone());
        assert_ne!(pinned, PinnedFile::at(&path("a")).unwrap());
        let name = present_name(&pinned);
        assert!(
            name.starts_with(folder.path()) && name.to_string_lossy().ends_with(" (deleted)"),
            "{name:?}"
        );
        assert_eq!(present_name(&path("a")), path("a"));
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRUSR).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/null")] {
            assert_eq!(PinnedFile::at(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        assert_eq!(PinnedFile::at(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
