//! Reasons why a recording is not packed.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::record::error::ReadError;

/// Reason why a recording is not packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// The folder is no recording.
    #[error("{path} is no recording: there is no run.nnt in it", path = .0.display())]
    NoRecording(PathBuf),
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] ReadError),
    /// A file of the recording cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A list of files cannot be understood.
    #[error("cannot read {path}: {reason}; --no-files packs the recording alone", path = path.display())]
    List {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A file changed meanwhile.
    #[error("{path} changed while it was packed: pack again when nothing writes to it", path = .0.display())]
    Changed(PathBuf),
    /// A file of the recording has a name that a pack cannot have.
    #[error("cannot pack {path}: its name is too long, or no plain text; rename it", path = .0.display())]
    Name(PathBuf),
    /// The pack cannot be written.
    #[error("cannot write the pack: {0}")]
    Write(io::Error),
}

impl PackError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}
