//! Files and folders that are not in their place yet: neither an error nor a signal leaves one behind.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::Directory;
use crate::caller::FileRights;

/// Prefix of the names of unfinished files and folders.
pub(super) const UNFINISHED: &str = ".nntrace-bpf-";

/// Rounds of removing a folder in which another thread may create files meanwhile.
const ROUNDS: usize = 50;

/// All that there are in this process.
static ALL: Mutex<Vec<(Directory, OsString)>> = Mutex::new(Vec::new());

/// Unfinished file or folder. Dropped, it is removed.
#[derive(Debug)]
pub struct Unfinished {
    around: Directory,
    name: OsString,
}

impl Unfinished {
    /// Creates an empty folder in another one.
    ///
    /// # Errors
    /// When that takes none.
    pub fn create_folder(around: &Directory) -> io::Result<Self> {
        Self::create(around, |name| around.create_folder(name)).map(|(unfinished, ())| unfinished)
    }

    /// Creates an empty file in a folder.
    ///
    /// # Errors
    /// When the folder takes none.
    pub fn create_file(around: &Directory) -> io::Result<(Self, File)> {
        Self::create(around, |name| around.create_file(name))
    }

    /// Gives a file without a name one in a folder.
    ///
    /// # Errors
    /// When the folder takes none.
    pub fn name_file(around: &Directory, file: &File) -> io::Result<Self> {
        Self::create(around, |name| around.name_file(file, name)).map(|(unfinished, ())| unfinished)
    }

    fn create<T>(
        around: &Directory,
        mut create: impl FnMut(&OsStr) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        // Where it looks for a name that is free; it creates and removes nothing there.
        let mut names = tempfile::Builder::new();
        let made = names.prefix(UNFINISHED).disable_cleanup(true).make_in("/", |path| {
            let name = path.file_name().unwrap_or_default().to_owned();
            let created = create(&name)?;
            Ok((name, created))
        })?;
        let ((name, created), _) = made.into_parts();
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push((around.clone(), name.clone()));
        Ok((Self { around: around.clone(), name }, created))
    }

    /// Returns the folder that it is in.
    pub(super) fn around(&self) -> &Directory {
        &self.around
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.around.path().join(&self.name)
    }

    /// Gives it up: it has another name now, or is to stay.
    pub fn forget(self) {
        self.unregister();
        std::mem::forget(self);
    }

    fn unregister(&self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(around, name)| *name != self.name || around.path() != self.around.path());
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.around, &self.name);
        self.unregister();
    }
}

/// Removes all unfinished files and folders of this process, which is about to end by a signal.
pub fn remove_all() {
    let all = ALL.lock().map_or_else(|error| error.into_inner().clone(), |all| all.clone());
    for _ in 0..ROUNDS {
        for (around, name) in &all {
            remove(around, name);
        }
        if !all.iter().any(|(around, name)| around.has(name)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn remove(around: &Directory, name: &OsStr) {
    // What is gone already, or cannot be removed, is nobody's loss.
    if let Ok(_rights) = FileRights::of_caller() {
        let _ = around.remove(name);
    }
}
