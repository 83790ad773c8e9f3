//! Reasons why a folder of results cannot be written.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::caller::as_whom;

/// Reason why a folder of results cannot be written.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Something is in its place.
    #[error("{path} exists already and is not an empty folder: name another one", path = .0.display())]
    Exists(PathBuf),
    /// Results are in its place, which may be replaced.
    #[error("{path} exists already; --force replaces it", path = .0.display())]
    Replaceable(PathBuf),
    /// The folder in its place holds something else too.
    #[error(
        "cannot replace {path}: {name} in it is not part of such results, and would be lost; move it away, or name another folder",
        path = path.display(), name = name.display()
    )]
    Foreign {
        /// Folder.
        path: PathBuf,
        /// Name of the file or folder in it.
        name: OsString,
    },
    /// It cannot be written.
    #[error("cannot write {path}{whom}: {source}", path = path.display(), whom = as_whom())]
    Write {
        /// Folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

impl FolderError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}
