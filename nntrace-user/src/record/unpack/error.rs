//! Reasons why a pack is not unpacked.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{record::pack::layout::VERSION, result_folder::FolderError};

/// Reason why a pack is not unpacked.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{path} is no pack of nntrace-bpf: {reason}", path = path.display())]
    NoPack {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The pack is of a newer version.
    #[error(
        "{path} is a newer pack, of version {version}, and this nntrace-bpf reads {VERSION}: use the one that packed it, or \
         a newer one",
        path = path.display()
    )]
    Newer {
        /// File.
        path: PathBuf,
        /// Version of the pack.
        version: u64,
    },
    /// The pack is damaged, or was made to do harm.
    #[error("{path} is refused, and nothing of it was unpacked: {reason}", path = path.display())]
    Refused {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The pack has more than was allowed.
    #[error(
        "{path} has {size} bytes unpacked, more than the {limit} of --max-size: raise it if you know where the pack is from",
        path = path.display()
    )]
    TooLarge {
        /// File.
        path: PathBuf,
        /// Bytes of its contents.
        size: u64,
        /// Bytes that are allowed.
        limit: u64,
    },
    /// The folder has something in it already.
    #[error("{path} exists already and is no empty folder: name another one with -o", path = .0.display())]
    Exists(PathBuf),
    /// The folder cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

impl From<FolderError> for UnpackError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Exists(path)
            | FolderError::Replaceable(path)
            | FolderError::Foreign { path, .. } => Self::Exists(path),
            FolderError::Write { path, source } => Self::Write { path, source },
        }
    }
}

impl UnpackError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}
