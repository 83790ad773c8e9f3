//! One entry of the list of files: a file, or a path that led nowhere.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use nix::errno::Errno;
use serde::{Serialize, Serializer};

use super::{image::ImageKind, open_flags};
use crate::model::opened_files::{FileUse, OpenedFile};

/// File systems that hold no files, but the state of the system.
const NO_FILES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Entry of the list, in the order of its keys.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own in the format")]
pub(super) struct Entry {
    path: Option<PathText>,
    as_given: Option<PathText>,
    pub(super) kind: ImageKind,
    opened_by: &'static str,
    flags: BTreeSet<open_flags::Flag>,
    errno: Option<String>,
    pid: u32,
    tid: u32,
    thread: Option<String>,
    first_ns: u64,
    count: u64,
    pub(super) size: Option<u64>,
    pub(super) mtime_ns: Option<u64>,
    pub(super) sha256: Option<String>,
    /// Reason why there is no hash, for a file that was opened.
    pub(super) not_hashed: Option<NotHashed>,
    pub(super) build_id: Option<String>,
    pub(super) machine: Option<String>,
    resolved_late: bool,
    truncated: bool,
    in_other_root: bool,
    is_executable: bool,
    is_probed: bool,
    /// The file itself, where its path is that of another root: it cannot be reached once the process has ended.
    #[serde(skip)]
    pub(super) held: Option<File>,
}

/// Reason why a file is not hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NotHashed {
    /// The recording was not ended.
    NotEnded,
    /// It is no regular file, or in a file system without files.
    NotAFile,
    /// It cannot be read, or is gone.
    Unreadable,
    /// It is larger than what may still be hashed.
    Budget,
    /// It was written while it was read.
    Changing,
}

impl Entry {
    /// Creates the entry of a file, which it may hold open if it cannot be reached later.
    pub(super) fn new(file: OpenedFile, may_hold: bool) -> Self {
        let mut entry = Self {
            kind: ImageKind::None,
            opened_by: file.how.name(),
            flags: file.flags.map(open_flags::names).unwrap_or_default(),
            errno: file.error.map(error_name),
            pid: file.pid,
            tid: file.tid,
            thread: None,
            first_ns: file.time,
            count: 1,
            size: None,
            mtime_ns: None,
            sha256: None,
            not_hashed: file.error.is_none().then_some(NotHashed::NotEnded),
            build_id: None,
            machine: None,
            resolved_late: file.is_resolved_late,
            truncated: file.is_truncated,
            in_other_root: file.reached_by.is_some(),
            is_executable: file.is_executable,
            is_probed: file.how == FileUse::Probed,
            held: None,
            path: file.path.map(PathText),
            as_given: file.given.map(PathText),
        };
        entry.look(file.reached_by.as_deref(), may_hold);
        entry
    }

    /// Takes another use of the same file.
    pub(super) fn add(&mut self, file: &OpenedFile) {
        // A file that was probed has not been used once more by that.
        if file.how == FileUse::Probed {
            self.is_probed = true;
            return;
        }
        self.count += 1;
        self.flags.extend(file.flags.map(open_flags::names).unwrap_or_default());
        self.resolved_late &= file.is_resolved_late;
        self.is_executable |= file.is_executable;
    }

    /// Notes size and time of the last change, as they are when the file is first used.
    fn look(&mut self, reached_by: Option<&Path>, may_hold: bool) {
        let Some(path) = reached_by.or(self.file()) else { return };
        let Ok(metadata) = fs::metadata(path) else { return };
        if metadata.is_file() {
            self.note(&metadata);
            self.held = reached_by.filter(|_| may_hold).and_then(|path| File::open(path).ok());
        }
    }

    pub(super) fn note(&mut self, metadata: &fs::Metadata) {
        self.size = Some(metadata.len());
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        self.mtime_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
    }

    /// Names the thread that used the file first, if one did.
    pub(super) fn name_thread(&mut self, name: &mut impl FnMut(u32, u32) -> String) {
        if self.pid != 0 {
            self.thread = Some(name(self.pid, self.tid));
        }
    }

    /// Returns the path, if a file was opened there that can be read again without harm.
    pub(super) fn file(&self) -> Option<&Path> {
        let PathText(path) = self.path.as_ref().filter(|_| self.errno.is_none())?;
        // A file without a name is none of this folder.
        let is_nameless = self.flags.contains(&open_flags::NAMELESS);
        (!is_nameless && !NO_FILES.iter().any(|folder| path.starts_with(folder))).then_some(path)
    }

    /// Whether the path is that of another root.
    pub(super) fn is_in_other_root(&self) -> bool {
        self.in_other_root
    }

    /// Whether the call opened something.
    pub(super) fn is_opened(&self) -> bool {
        self.errno.is_none()
    }
}

/// Returns the name of an error, such as `ENOENT`.
fn error_name(error: i32) -> String {
    match Errno::from_raw(error) {
        // Of the kernel itself: the call is made again after a signal.
        Errno::UnknownErrno => format!("error {error}"),
        known => format!("{known:?}"),
    }
}

/// Path that is written as text; bytes that are none are replaced.
#[derive(Debug)]
struct PathText(PathBuf);

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_string_lossy().serialize(serializer)
    }
}
