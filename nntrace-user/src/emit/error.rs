//! Reasons why a recording is not played.

use std::{io, path::PathBuf};

use thiserror::Error;

use super::collect::MOST_MARKS;
use crate::record::ReadError;

/// Reason why a recording is not played.
#[derive(Debug, Error)]
pub enum EmitError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is nothing to play.
    #[error("{path} has no marks: there is nothing to write", path = .0.display())]
    NoMarks(PathBuf),
    /// It is too large to be kept in memory.
    #[error(
        "{path} has more than {MOST_MARKS} marks, the most that are kept in memory to be written: record a shorter time, \
         with --duration, or take a part of a trace, with --time-range",
        path = .0.display()
    )]
    TooManyMarks(PathBuf),
    /// The file for marks cannot be written.
    #[error(
        "cannot write marks to {path}: {reason}; mount tracefs (`sudo mount -t tracefs tracefs /sys/kernel/tracing`) and \
         run as root, or leave --to away to call `tracing_mark_write`",
        path = path.display()
    )]
    TraceMarker {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: io::Error,
    },
    /// There is no memory for the processes to share.
    #[error("cannot share memory with the processes that write the marks: {0}")]
    Memory(io::Error),
    /// A process cannot be started.
    #[error(
        "cannot start a process for the recorded process {pid}: {reason}; the marks up to there were written"
    )]
    Process {
        /// Recorded process.
        pid: u32,
        /// Reason.
        reason: io::Error,
    },
}
