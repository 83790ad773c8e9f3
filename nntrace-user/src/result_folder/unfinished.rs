//! Files and folders that are not in their place yet: neither an error nor a signal leaves one behind.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Prefix of the names of unfinished files and folders.
pub const UNFINISHED: &str = ".nntrace-bpf-";

/// Rounds of removing a folder in which another thread may create files meanwhile.
const ROUNDS: usize = 50;

/// All that there are in this process.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Unfinished file or folder. Dropped, it is removed.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Creates an empty folder in another one, with this mode before the umask.
    pub(super) fn create_folder(around: &Path, mode: u32) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let created =
            builder.prefix(UNFINISHED).permissions(Permissions::from_mode(mode)).tempdir_in(around)?;
        Ok(Self::of(created.keep()))
    }

    /// Takes over a file or folder that exists.
    #[must_use]
    pub fn of(path: PathBuf) -> Self {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Self(path)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it up: it has another name now, or is to stay.
    pub fn forget(self) {
        self.unregister();
        std::mem::forget(self);
    }

    fn unregister(&self) {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.0);
        self.unregister();
    }
}

/// Removes all unfinished files and folders of this process, which is about to end by a signal.
pub fn remove_all() {
    let all = ALL.lock().map_or_else(|error| error.into_inner().clone(), |all| all.clone());
    for _ in 0..ROUNDS {
        for path in &all {
            remove(path);
        }
        if !all.iter().any(|path| path.symlink_metadata().is_ok()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn remove(path: &Path) {
    // What is gone already, or cannot be removed, is nobody's loss.
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
