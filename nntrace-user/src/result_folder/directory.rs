//! Open folders: what is done in one is done there, wherever its path leads meanwhile.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io::{self, ErrorKind},
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::{
    errno::Errno,
    fcntl::{
        AT_FDCWD, AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, open, openat, openat2, renameat,
        renameat2,
    },
    sys::stat::{Mode, fstatat, mkdirat},
    unistd::{UnlinkatFlags, linkat, unlinkat},
};

/// Mode of a new file, before the umask.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);
/// Mode of a new folder, before the umask.
const FOLDER_MODE: Mode = Mode::from_bits_truncate(0o777);
const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Open folder.
#[derive(Clone, Debug)]
pub struct Directory {
    folder: Arc<OwnedFd>,
    /// Where it was when it was opened, without links.
    path: PathBuf,
}

impl Directory {
    /// Opens a folder.
    ///
    /// # Errors
    /// When it cannot be opened, or is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let how = OpenHow::new().flags(FOLDER).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let folder = match openat2(AT_FDCWD, &path, how) {
            // The kernel is older than 5.6, or a sandbox does not know the call.
            Err(Errno::ENOSYS | Errno::EPERM) => open(&path, FOLDER, Mode::empty()),
            opened => opened,
        };
        Ok(Self { folder: Arc::new(folder?), path })
    }

    /// Opens a folder in it, which must not be a link.
    ///
    /// # Errors
    /// As of [`Directory::open`].
    pub(super) fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        let folder = openat(&self.folder, name, FOLDER, Mode::empty())?;
        Ok(Self { folder: Arc::new(folder), path: self.path.join(name) })
    }

    /// Returns where it was when it was opened, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Describes it.
    ///
    /// # Errors
    /// When the kernel does not.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.folder.try_clone()?).metadata()
    }

    /// Returns a path that leads to it, wherever it is now.
    fn handle(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// Returns the names of what is in it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(self.handle())?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Creates a file that does not exist yet.
    ///
    /// # Errors
    /// When it exists, even as a link, or cannot be created.
    pub fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.folder, name, flags, FILE_MODE)?.into())
    }

    /// Creates a file that no name leads to: the kernel removes it, however we end. `None` where the file system
    /// does not support that.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create_nameless(&self) -> io::Result<Option<File>> {
        let flags = OFlag::O_WRONLY | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        match openat(&self.folder, ".", flags, FILE_MODE) {
            // What file systems and kernels answer that do not know such files.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => Ok(None),
            opened => Ok(Some(opened?.into())),
        }
    }

    /// Creates a folder.
    ///
    /// # Errors
    /// When something has its name, or it cannot be created.
    pub(super) fn create_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(mkdirat(&self.folder, name, FOLDER_MODE)?)
    }

    /// Gives a file without a name one in this folder.
    ///
    /// # Errors
    /// When something has the name, or the folder takes no file.
    pub fn name_file(&self, file: &File, name: &OsStr) -> io::Result<()> {
        let handle = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(linkat(AT_FDCWD, &handle, &self.folder, name, AtFlags::AT_SYMLINK_FOLLOW)?)
    }

    /// Whether something has this name, a link to nowhere included.
    pub(super) fn has(&self, name: &OsStr) -> bool {
        fstatat(&self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Gives a file or an empty folder the place of another one, in this folder or another.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder, name, &to.folder, new)?)
    }

    /// Gives a file another name, which must not be taken.
    ///
    /// # Errors
    /// When it is taken, or the file cannot be renamed.
    pub fn rename_to_new(&self, name: &OsStr, new: &OsStr) -> io::Result<()> {
        match renameat2(&self.folder, name, &self.folder, new, RenameFlags::RENAME_NOREPLACE) {
            // Not on every file system: a second link is as good.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                linkat(&self.folder, name, &self.folder, new, AtFlags::empty())?;
                self.remove_file(name)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes a file, or a folder with what is in it; no link is followed.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match self.remove_file(name) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                fs::remove_dir_all(self.handle().join(name))
            }
            removed => removed,
        }
    }
}
