//! Parsing of untrusted files by processes without privileges, once their server has been started.
//!
//! Files may be damaged or malicious, and this program holds privileges. What is to be found in a file is therefore an
//! [`Examination`]: a value that can be sent, whose findings can be sent back. After [`start`], a server has files parsed.
//! It runs the same program without any rights, parses no file itself, and gives each one to a child, which may read that file
//! and can do nothing else:
//!
//! ```text
//! examine ─► file, question ─► connection ═══ control ═══► service: server ─► confinement
//!                                   ▲                                  │ fork
//!         ◄─ findings       ◄───────╚═════ a socket a question ═════ child
//! ```
//!
//! If a file crashes that child, or exceeds its limits of memory and time, only that file fails. An idle server is ended
//! ([`end_if_idle`]).

mod confinement;
mod connection;
mod folders;
mod messages;
mod service;

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use nix::libc;
use serde::{Serialize, de::DeserializeOwned};

use self::connection::{Connection, Failure};
pub(in crate::live) use self::folders::{Folders, FoldersOf, LEVELS};
pub(in crate::live) use self::service::{Prepared, prepared, serve};
use super::elf_error::{ElfError, ElfErrorReason};
use crate::foreign_map::ForeignMap;

/// Argument with which the program has files parsed for another process.
pub(in crate::live) const ARGUMENT: &str = "examine-files";

/// Time without a question after which the server is ended.
const IDLE: Duration = Duration::from_secs(10);

/// Files that failed which are known at most.
const MOST_FAILED: usize = 4096;

/// Server that has files parsed, if this process does not parse them itself.
static EXAMINER: Mutex<Option<Examiner>> = Mutex::new(None);

/// Something to be found in the bytes of a file. Findings come from a process that a file may have taken over: whoever uses
/// them checks every number.
pub(in crate::live) trait Examination: Serialize + DeserializeOwned {
    /// Findings.
    type Findings: Serialize + DeserializeOwned;

    /// Name of the examination in messages.
    const NAME: &'static str;

    /// Examines the bytes of a file, which others may change meanwhile.
    ///
    /// # Errors
    /// When the file is of another kind, or damaged.
    fn find(&self, bytes: &[u8], folders: &dyn Folders) -> Result<Self::Findings, ElfErrorReason>;
}

/// Has files parsed by processes without privileges from now on, by a server that runs `program`.
///
/// # Errors
/// When that does not start, or cannot give up its rights.
pub(in crate::live) fn start(program: &Path) -> io::Result<()> {
    let examiner = Examiner::new(program.to_owned(), Connection::start(program)?);
    *EXAMINER.lock().unwrap_or_else(PoisonError::into_inner) = Some(examiner);
    Ok(())
}

/// Ends the server; files are parsed in this process from now on.
pub(in crate::live) fn end() {
    *EXAMINER.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Ends the server if it has had nothing to do for a while; the next examination starts another one.
pub(in crate::live) fn end_if_idle() {
    if let Some(examiner) = EXAMINER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        examiner.end_if_idle(Instant::now());
    }
}

/// Examines the file at `path`. It was found at `name`, which may be another path.
///
/// # Errors
/// When it cannot be read, or was cut short meanwhile; when the process that parses it failed; and those of the examination.
pub(in crate::live) fn examine_named<E: Examination>(
    path: &Path,
    name: &Path,
    what: &E,
) -> Result<E::Findings, ElfErrorReason> {
    // A pipe would wait for a writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ElfErrorReason::NotElf);
    }
    let folders = FoldersOf(name);
    match EXAMINER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(examiner) => examiner.ask(&file, &folders, what),
        None => examine_here(&file, &folders, what),
    }
}

/// Examines the file at `path`.
///
/// # Errors
/// See [`examine_named`].
pub(in crate::live) fn examine<E: Examination>(path: &Path, what: &E) -> Result<E::Findings, ElfErrorReason> {
    examine_named(path, path, what)
}

/// Examines the file at `path`.
///
/// # Errors
/// See [`examine_named`], with the path of the file.
pub(super) fn examine_at<E: Examination>(path: &Path, what: &E) -> Result<E::Findings, ElfError> {
    examine(path, what).map_err(|reason| reason.in_file(path))
}

/// Examines a file in this process. It is mapped: pages that are not read take no memory.
fn examine_here<E: Examination>(
    file: &File,
    folders: &dyn Folders,
    what: &E,
) -> Result<E::Findings, ElfErrorReason> {
    let map = ForeignMap::of(file)?;
    let findings = map.with_bytes(|bytes| what.find(bytes, folders));
    if map.is_damaged() { Err(ElfErrorReason::Cut) } else { findings }
}

/// Server that has files parsed, and what is needed to start it again.
struct Examiner {
    program: PathBuf,
    /// `None` after its end.
    connection: Option<Connection>,
    last_used: Instant,
    /// Files that failed, with the reasons: they are not tried again.
    failed: HashMap<FileKey, String>,
}

/// File, and when it was changed last: device, inode, seconds and nanoseconds.
type FileKey = (u64, u64, i64, i64);

fn key(file: &File) -> io::Result<FileKey> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

impl Examiner {
    fn new(program: PathBuf, connection: Connection) -> Self {
        Self { program, connection: Some(connection), last_used: Instant::now(), failed: HashMap::new() }
    }

    fn ask<E: Examination>(
        &mut self,
        file: &File,
        folders: &dyn Folders,
        what: &E,
    ) -> Result<E::Findings, ElfErrorReason> {
        let failed = |reason: String| ElfErrorReason::NotExamined(reason);
        let question = serde_json::to_vec(&(E::NAME, what)).map_err(|error| failed(error.to_string()))?;
        let key = key(file)?;
        if let Some(reason) = self.failed.get(&key) {
            return Err(failed(reason.clone()));
        }
        let connection = match self.connection.take_if(Connection::is_alive) {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let answer = connection.ask(file, folders, &question);
        if matches!(answer, Ok(_) | Err(Failure::Ended(_))) {
            (self.connection, self.last_used) = (Some(connection), Instant::now());
        }
        if let Err(failure @ (Failure::Ended(_) | Failure::TookTooLong(_))) = &answer
            && self.failed.len() < MOST_FAILED
        {
            self.failed.insert(key, failure.to_string());
        }
        let answer = answer.map_err(|failure| failed(failure.to_string()))?;
        serde_json::from_slice::<Result<_, _>>(&answer)
            .map_err(|error| failed(format!("what was found is damaged: {error}")))?
    }

    fn end_if_idle(&mut self, now: Instant) {
        if now.saturating_duration_since(self.last_used) > IDLE {
            self.connection = None;
        }
    }

    fn connect(&self) -> Result<Connection, ElfErrorReason> {
        Connection::start(&self.program).map_err(|error| {
            ElfErrorReason::NotExamined(format!("the server that has files parsed does not start: {error}"))
        })
    }
}

#[cfg(test)]
mod tests;
