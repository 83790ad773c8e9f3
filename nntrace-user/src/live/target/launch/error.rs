//! Why a command does not start, or how it has ended.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus};

use thiserror::Error;

use crate::live::target::run_as::RunAsError;

/// Why a command could not be started and held.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// There is no command.
    #[error("no command to launch: write it behind `--`, as in `-- ./app --its-option`")]
    Empty,
    /// No directory in `PATH` holds it.
    #[error(
        "command {command:?} not found in PATH={}; give its full path (sudo may have replaced PATH: `-- \"$(command -v {})\"`)",
        .path.display(), .command.display()
    )]
    NotFound {
        /// Its first word.
        command: OsString,
        /// The directories searched.
        path: OsString,
    },
    /// The path given leads to nothing.
    #[error("no file {}: check the path, relative ones start in the current directory", .program.display())]
    NoFile {
        /// The path.
        program: PathBuf,
    },
    /// It is no program.
    #[error("{} cannot be executed: {why}", .program.display())]
    NotExecutable {
        /// Its path.
        program: PathBuf,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// It is a program of an unknown kind, or for another machine.
    #[error("{}: exec format error: {why}", .program.display())]
    Format {
        /// Its path.
        program: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// What it needs to run is missing.
    #[error(
        "{} cannot be executed: its interpreter {} does not exist; install that, or build the program for this system",
        .program.display(), .interpreter.display()
    )]
    NoInterpreter {
        /// Its path.
        program: PathBuf,
        /// The script's interpreter or the executable's dynamic loader.
        interpreter: OsString,
    },
    /// The user it runs as may not execute it.
    #[error(
        "{}: permission denied for {user}: a directory on the way or the file itself lets {user} not pass (or is mounted noexec); `namei -l {}` shows which",
        .program.display(), .program.display()
    )]
    Permission {
        /// Its path.
        program: PathBuf,
        /// The user.
        user: String,
    },
    /// The kernel does not let us hold a child, or change to the user.
    #[error("starting {} held was refused ({source}): {reason}", .program.display())]
    Refused {
        /// Its path.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What may be the reason, and what to do.
        reason: String,
    },
    /// It could not be started for another reason.
    #[error("cannot start {}: {source}", .program.display())]
    Spawn {
        /// Its path.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It ended while it was held.
    #[error("the command ended before it was traced ({status}): run it without tracing to see why")]
    EndedEarly {
        /// How it ended.
        status: ExitStatus,
    },
    /// Holding it failed.
    #[error(
        "lost hold of process {pid} while it was to {step}: {source}; start it again, or start it first and use --pid"
    )]
    Trace {
        /// The process.
        pid: u32,
        /// What was to be done.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// It is not clear as whom to run it.
    #[error(transparent)]
    RunAs(#[from] RunAsError),
}

/// How a shell gives an end: the exit code, or 128 and the signal's number.
#[must_use]
pub(crate) fn shell_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
