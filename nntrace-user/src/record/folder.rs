//! Folders of recordings that are to be written.
//!
//! A folder is created with the first file of its recording, when the run has begun: a run that cannot start changes nothing.
//! It gets its place, and a recording that is replaced is removed, when the first state of the run is written, with which
//! the new one can be read.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use super::{
    error::RecordError,
    files,
    format::{EXTENSION, RUN_FILE},
};
use crate::result_folder::{FolderError, Kind, PART, ResultFolder};

/// Recordings as results.
pub(super) const KIND: Kind = Kind { is_part, last: Some(RUN_FILE) };

/// Whether a file of this name is part of a recording.
fn is_part(name: &OsStr) -> bool {
    let is_list = || ["", PART].iter().any(|end| name == OsStr::new(&format!("{}{end}", files::NAME)));
    Path::new(name).extension().is_some_and(|extension| extension == EXTENSION) || is_list()
}

/// Folder of a recording that is being written.
pub(super) struct Folder {
    path: PathBuf,
    replace: bool,
    /// The folder, once there is a file in it.
    created: Option<ResultFolder>,
}

impl Folder {
    /// Checks that a recording can be written to a folder, and changes nothing. It has to be new or empty, or, where a recording
    /// may be replaced, to hold one and nothing else.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn new(path: &Path, replace: bool) -> Result<Self, RecordError> {
        ResultFolder::check(path, KIND, replace)?;
        Ok(Self { path: path.to_owned(), replace, created: None })
    }

    /// Returns its path, as the user wrote it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn create_file(&mut self, name: &str) -> Result<File, RecordError> {
        let file = self.created()?.create_file(name);
        file.map_err(|source| self.error(name, source))
    }

    /// Whether there is a file of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.created.as_ref().is_some_and(|folder| folder.has(name))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn remove_file(&mut self, name: &str) -> Result<(), RecordError> {
        let removed = self.created()?.remove_file(name);
        removed.map_err(|source| self.error(name, source))
    }

    /// Gives a file another content: it has the one or the other at any time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn replace_file(&mut self, name: &str, content: &[u8]) -> Result<(), RecordError> {
        let replaced = self.created()?.replace_file(name, content);
        replaced.map_err(|source| self.error(name, source))
    }

    /// Puts the folder in its place, where it is not yet: a recording that was there is removed.
    ///
    /// # Errors
    /// When the place was taken meanwhile, or cannot be written.
    pub(super) fn settle(&mut self) -> Result<(), RecordError> {
        Ok(self.created()?.settle()?)
    }

    /// Returns the error that a file could not be written.
    pub(super) fn error(&self, name: &str, source: io::Error) -> RecordError {
        RecordError::write(&self.path.join(name), source)
    }

    fn created(&mut self) -> Result<&mut ResultFolder, RecordError> {
        match &mut self.created {
            Some(folder) => Ok(folder),
            created => Ok(created.insert(ResultFolder::create(&self.path, KIND, self.replace)?)),
        }
    }
}

impl From<FolderError> for RecordError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Exists(path) | FolderError::Replaceable(path) => Self::Exists(path),
            FolderError::Foreign { .. } => Self::Foreign(error),
            FolderError::Write { path, source } => Self::Write { path, source },
        }
    }
}

/// Returns the folder of the recording of this number: the first is the one that was named, the second `NAME-2`.
pub(super) fn numbered(folder: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return folder.to_owned();
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}-{number}"))
}
