//! Reasons why a recording is not written, or not read.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{caller::as_whom, result_folder::FolderError};

/// Reason why a recording is not written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The folder has something in it already.
    #[error("{path} exists already and is not empty: name another folder, or replace the recording in it with --force",
        path = .0.display())]
    Exists(PathBuf),
    /// The folder has something else in it than the recording that is to be replaced.
    #[error(transparent)]
    Foreign(FolderError),
    /// A file or the folder cannot be written.
    #[error("cannot write {path}{whom}: {source}; what was recorded before is whole", path = path.display(), whom = as_whom())]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The recording has ended early.
    #[error("the recording is not written to its end: {0}")]
    Failed(String),
}

impl RecordError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

/// Reason why a recording is not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The folder or a file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A file is of no version that is known.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Version {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// There is no state of the run in it.
    #[error(
        "{path} has no intact checkpoint, without which nothing is known of its run: it was ended before its first second \
         was over, or run.nnt is damaged",
        path = path.display()
    )]
    NoCheckpoint {
        /// Folder.
        path: PathBuf,
    },
    /// The recording has not what a question needs.
    #[error("{0}")]
    Question(String),
}

impl ReadError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}
