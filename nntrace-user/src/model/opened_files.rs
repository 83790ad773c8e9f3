//! Files of a run: those that its processes opened, and those that were there before. The model takes none of them; a
//! recording lists them.

use std::path::PathBuf;

use nntrace_common::opened_files::FileCall;

/// Way in which a run came to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// A system call opened or executed it, or tried to.
    Call(FileCall),
    /// It was mapped by a target when the run began.
    Mapped,
    /// It was probed.
    Probed,
}

impl FileUse {
    /// Returns the name: that of the system call, where one was made.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call(FileCall::Open) => "open",
            Self::Call(FileCall::Creat) => "creat",
            Self::Call(FileCall::OpenAt) => "openat",
            Self::Call(FileCall::OpenAt2) => "openat2",
            Self::Call(FileCall::Execve) => "execve",
            Self::Call(FileCall::ExecveAt) => "execveat",
            Self::Mapped => "mapped",
            Self::Probed => "probed",
        }
    }
}

/// Use of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenedFile {
    /// Process; 0 where no one did it.
    pub(crate) pid: u32,
    /// Thread; 0 where no one did it.
    pub(crate) tid: u32,
    /// Time, ns.
    pub(crate) time: u64,
    /// Way.
    pub(crate) how: FileUse,
    /// Path as it was given to the call; `None` where it could not be read, or there was none.
    pub(crate) given: Option<PathBuf>,
    /// Whether the path as it was given was longer.
    pub(crate) is_truncated: bool,
    /// Absolute path; `None` where it is not known.
    pub(crate) path: Option<PathBuf>,
    /// Whether the path was made out after the call, by what the process had open then: it may be another one.
    pub(crate) is_resolved_late: bool,
    /// Path by which we open it, where that is another one: the process has another root.
    pub(crate) reached_by: Option<PathBuf>,
    /// Flags as they were given; `None` for a way without any.
    pub(crate) flags: Option<u64>,
    /// Error of the call, as a positive number.
    pub(crate) error: Option<i32>,
    /// Whether it is the executable of a target.
    pub(crate) is_executable: bool,
}

/// Consumer of the files of a run.
pub(crate) trait ObserveFiles {
    /// Takes the use of a file.
    fn file(&mut self, file: OpenedFile);

    /// Takes the number of uses so far that are lost.
    fn lost(&mut self, uses: u64);
}

/// Consumer of the files of a run, such as a recording.
pub struct FileObserver(Box<dyn ObserveFiles>);

impl FileObserver {
    /// Wraps a consumer.
    pub(crate) fn new(consumer: impl ObserveFiles + 'static) -> Self {
        Self(Box::new(consumer))
    }

    /// Passes the use of a file on.
    pub(crate) fn file(&mut self, file: OpenedFile) {
        self.0.file(file);
    }

    /// Passes the number of lost uses on.
    pub(crate) fn lost(&mut self, uses: u64) {
        self.0.lost(uses);
    }
}
