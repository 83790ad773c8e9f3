//! Errors in starting a command, and its exit code.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus};

use thiserror::Error;

use crate::caller::RunAsError;

/// Reason why a command could not be started and held.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// There is no command.
    #[error("no command to launch: write it after `--`, as in `-- ./app --its-option`")]
    Empty,
    /// No directory in `PATH` holds it.
    #[error(
        "command {command:?} not found in PATH={}; give its full path (sudo may have replaced PATH: `-- \"$(command -v {})\"`)",
        .path.display(), .command.display()
    )]
    NotFound {
        /// First word of the command.
        command: OsString,
        /// Directories searched.
        path: OsString,
    },
    /// The path given leads to nothing.
    #[error("no file {}: check the path, relative ones start in the current directory", .program.display())]
    NoFile {
        /// Path as given.
        program: PathBuf,
    },
    /// The file is not a program.
    #[error("{} cannot be executed: {why}", .program.display())]
    NotExecutable {
        /// Path of the program.
        program: PathBuf,
        /// Reason and remedy.
        why: &'static str,
    },
    /// A program of an unknown kind, or for another machine.
    #[error("{}: exec format error: {why}", .program.display())]
    Format {
        /// Path of the program.
        program: PathBuf,
        /// Reason and remedy.
        why: String,
    },
    /// An interpreter or dynamic loader is missing.
    #[error(
        "{} cannot be executed: its interpreter {} does not exist; install that, or build the program for this system",
        .program.display(), .interpreter.display()
    )]
    NoInterpreter {
        /// Path of the program.
        program: PathBuf,
        /// Script's interpreter or executable's dynamic loader.
        interpreter: OsString,
    },
    /// The user it runs as may not execute it.
    #[error(
        "{}: permission denied for {user}: a directory on the way or the file itself lets {user} not pass (or is mounted noexec); `namei -l {}` shows which",
        .program.display(), .program.display()
    )]
    Permission {
        /// Path of the program.
        program: PathBuf,
        /// Name of the user.
        user: String,
    },
    /// The kernel does not let us hold a child, or change to the user.
    #[error("starting {} held was refused ({source}): {reason}", .program.display())]
    Refused {
        /// Path of the program.
        program: PathBuf,
        /// Answer of the kernel.
        source: io::Error,
        /// Possible reason and remedy.
        reason: String,
    },
    /// The command could not be started for another reason.
    #[error("cannot start {}: {source}", .program.display())]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The command ended while it was held.
    #[error("the command ended before it was traced ({status}): run it without tracing to see why")]
    EndedEarly {
        /// Exit status.
        status: ExitStatus,
    },
    /// Holding it failed.
    #[error(
        "lost hold of process {pid} while it was to {step}: {source}; start it again, or start it first and use --pid"
    )]
    Trace {
        /// Process id.
        pid: u32,
        /// Step that failed.
        step: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// The user to run it as is unclear.
    #[error(transparent)]
    RunAs(#[from] RunAsError),
}

/// Returns the exit code as a shell does: 128 and the signal's number for a signal.
#[must_use]
pub(crate) fn shell_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
