//! Selection of the processes to trace, by number or name, with their threads and descendants.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::name_matching;
use crate::{caller, model::name_pattern::glob};

/// Bytes of a process's name that the kernel keeps.
const COMM_LEN: usize = 15;
/// `PF_KTHREAD` of the kernel's task flags.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reason why there is no process to trace.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// No process or thread has this number.
    #[error(
        "no process {pid}: it has ended, or never was; `pgrep -a NAME` lists the processes of a name with their numbers"
    )]
    NoSuchProcess {
        /// Number asked for.
        pid: u32,
    },
    /// The number is a thread's, not a process's.
    #[error(
        "{tid} is a thread of process {pid} ({comm}), not a process: take --pid {pid}, all its threads are traced"
    )]
    IsThread {
        /// Number asked for.
        tid: u32,
        /// Process of the thread.
        pid: u32,
        /// Name of that process.
        comm: String,
    },
    /// The process has ended and only waits for its parent.
    #[error(
        "process {pid} ({comm}) has ended, only its exit status is left for its parent to read: start it again"
    )]
    Ended {
        /// Number asked for.
        pid: u32,
        /// Name of the process.
        comm: String,
    },
    /// The process is a part of the kernel.
    #[error(
        "process {pid} ({comm}) is a kernel thread: it runs no program that could write marks; choose a user process"
    )]
    KernelThread {
        /// Number asked for.
        pid: u32,
        /// Name of the process.
        comm: String,
    },
    /// No process has such a name.
    #[error("no process is named {pattern:?}{}; `ps -eo pid,comm` lists all names, `*` and `?` stand for any text and any character", near_text(.near))]
    NoneNamed {
        /// Pattern asked for.
        pattern: String,
        /// Running processes with a similar name.
        near: Vec<String>,
    },
    /// Information on the process in /proc may not be read.
    #[error("reading {} is not permitted: the process belongs to another user, or /proc hides it (hidepid); run as that user or with sudo", .path.display())]
    Permission {
        /// File that may not be read.
        path: PathBuf,
    },
    /// /proc could not be read.
    #[error("cannot read {}: {source}; is /proc mounted?", .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The kernel gave no pidfd of the process.
    #[error(
        "cannot watch process {pid} for its end: {source}; pidfd_open needs Linux 5.3 and a file descriptor to spare"
    )]
    Watch {
        /// Process id.
        pid: u32,
        /// Cause.
        source: io::Error,
    },
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(", but there is {}", near.join(", ")) }
}

/// Snapshot of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id, which is also that of its main thread.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Name: at most 15 bytes.
    pub comm: String,
    /// Path of its executable in its own view; not for kernel threads, nor for processes we may not inspect.
    pub exe: Option<PathBuf>,
    /// Start time, in clock ticks since boot. With the id it is unique: ids are reused.
    pub started: u64,
    /// Whether all of its threads have ended.
    ended: bool,
    /// Whether its main thread has.
    main_ended: bool,
    kernel: bool,
}

/// View of the running processes through a proc file system.
#[derive(Clone, Debug)]
pub struct Processes {
    proc: PathBuf,
}

impl Default for Processes {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Processes {
    /// Uses the proc file system mounted at `proc`.
    #[must_use]
    pub(crate) fn at(proc: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into() }
    }

    /// Returns the proc file system's directory for the memory and the files of a process. Its main thread has none any more when
    /// it has ended before others: then it is the directory of one of those.
    #[must_use]
    pub(crate) fn dir(&self, pid: u32) -> PathBuf {
        let dir = self.own_dir(pid);
        let has_ended = |dir: &Path| {
            let stat = std::fs::read_to_string(dir.join("stat")).ok();
            stat.and_then(|stat| parse_stat(pid, &stat)).is_some_and(|task| task.main_ended)
        };
        if !has_ended(&dir) {
            return dir;
        }
        let tasks = dir.join("task");
        let threads = numbers(&tasks).unwrap_or_default();
        threads.iter().map(|tid| tasks.join(tid.to_string())).find(|task| !has_ended(task)).unwrap_or(dir)
    }

    fn own_dir(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }

    /// Finds the process with this number.
    ///
    /// # Errors
    /// When there is none, when the number is a thread's, or when it is no process that could run a program.
    pub fn by_pid(&self, pid: u32) -> Result<Process, ProcessError> {
        let group = self.thread_group(pid)?;
        if group != pid {
            let comm = self.look(group).map_or_else(|_| "?".to_owned(), |process| process.comm);
            return Err(ProcessError::IsThread { tid: pid, pid: group, comm });
        }
        let process = self.look(pid)?;
        let comm = process.comm.clone();
        match process {
            Process { ended: true, .. } => Err(ProcessError::Ended { pid, comm }),
            Process { kernel: true, .. } => Err(ProcessError::KernelThread { pid, comm }),
            _ => self.check_right(pid).map(|()| process),
        }
    }

    /// Checks that the user may trace a process.
    fn check_right(&self, pid: u32) -> Result<(), ProcessError> {
        let folder = self.own_dir(pid);
        caller::may_trace(&folder).map_err(|source| gone(read_error(folder.join("auxv"), source), pid))
    }

    /// Finds all processes whose name matches a glob, except ourselves and kernel threads.
    ///
    /// The kernel cuts names to 15 bytes: one that may be cut is also compared by its program's file name.
    ///
    /// # Errors
    /// When none matches, with similar names.
    pub(crate) fn by_comm(&self, pattern: &str) -> Result<Vec<Process>, ProcessError> {
        let (found, others): (Vec<_>, Vec<_>) = self
            .all()?
            .into_iter()
            .filter(|process| !process.kernel && !process.ended && process.pid != std::process::id())
            .partition(|process| process.is_named(pattern));
        if found.is_empty() {
            return Err(ProcessError::NoneNamed {
                pattern: pattern.to_owned(),
                near: near(pattern, &others),
            });
        }
        let (may, may_not): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(|process| (self.check_right(process.pid), process))
            .partition(|(right, _)| right.is_ok());
        match may_not.into_iter().next() {
            Some((Err(error), _)) if may.is_empty() => Err(error),
            _ => Ok(may.into_iter().map(|(_, process)| process).collect()),
        }
    }

    /// Finds the processes with these numbers and these names, each once.
    ///
    /// # Errors
    /// For the first number or name that finds none.
    pub fn select(&self, pids: &[u32], comms: &[String]) -> Result<Vec<Process>, ProcessError> {
        let mut chosen = pids.iter().map(|&pid| self.by_pid(pid)).collect::<Result<Vec<_>, _>>()?;
        for pattern in comms {
            chosen.extend(self.by_comm(pattern)?);
        }
        let mut seen = HashSet::new();
        chosen.retain(|process| seen.insert(process.pid));
        Ok(chosen)
    }

    /// Finds all descendants of these processes, without the processes themselves.
    ///
    /// Processes started in the meantime may be missed: enable fork events before calling it. A daemon whose parent
    /// has ended is nobody's descendant.
    ///
    /// # Errors
    /// When /proc cannot be listed.
    pub(crate) fn descendants(&self, roots: &[u32]) -> Result<Vec<Process>, ProcessError> {
        let mut others = self.all()?;
        let mut family: HashSet<u32> = roots.iter().copied().collect();
        others.retain(|process| !process.ended && !family.contains(&process.pid));
        let mut found = Vec::new();
        loop {
            let (children, rest): (Vec<_>, Vec<_>) =
                others.into_iter().partition(|process| family.contains(&process.parent));
            if children.is_empty() {
                return Ok(found);
            }
            family.extend(children.iter().map(|child| child.pid));
            // A setuid program, say, is not among them for a user who may not trace it.
            found.extend(children.into_iter().filter(|child| self.check_right(child.pid).is_ok()));
            others = rest;
        }
    }

    /// Lists the thread ids of a process, including the main thread's.
    ///
    /// # Errors
    /// When it has ended or may not be inspected.
    pub fn threads(&self, pid: u32) -> Result<Vec<u32>, ProcessError> {
        numbers(&self.own_dir(pid).join("task")).map_err(|error| gone(error, pid))
    }

    /// Reads the mappings of a process, as the kernel prints them.
    ///
    /// # Errors
    /// When it has ended or may not be inspected.
    pub(super) fn maps(&self, pid: u32) -> Result<Vec<u8>, ProcessError> {
        let path = self.dir(pid).join("maps");
        std::fs::read(&path).map_err(|source| gone(read_error(path, source), pid))
    }

    fn all(&self) -> Result<Vec<Process>, ProcessError> {
        let pids = numbers(&self.proc)?;
        // A process that has ended since it was listed is no longer one; one that may not be read cannot be traced.
        Ok(pids.into_iter().filter_map(|pid| self.look(pid).ok()).collect())
    }

    /// Returns the process of a thread, whose directory exists though it is not listed.
    fn thread_group(&self, tid: u32) -> Result<u32, ProcessError> {
        let status = self.read(tid, "status")?;
        let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        Ok(group.unwrap_or(tid))
    }

    fn look(&self, pid: u32) -> Result<Process, ProcessError> {
        let stat = self.read(pid, "stat")?;
        let mut process = parse_stat(pid, &stat).ok_or_else(|| ProcessError::Read {
            path: self.own_dir(pid).join("stat"),
            source: io::Error::new(io::ErrorKind::InvalidData, format!("unknown form: {stat:?}")),
        })?;
        process.exe = std::fs::read_link(self.dir(pid).join("exe")).ok();
        Ok(process)
    }

    fn read(&self, pid: u32, file: &str) -> Result<String, ProcessError> {
        let path = self.own_dir(pid).join(file);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(source) => Err(gone(read_error(path, source), pid)),
        }
    }
}

impl Process {
    fn is_named(&self, pattern: &str) -> bool {
        let cut = self.comm.len() >= COMM_LEN;
        let file = self.exe.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        glob(pattern, &self.comm)
            || file.is_some_and(|file| cut && file.starts_with(&self.comm) && glob(pattern, file))
    }
}

/// Lists the names in a directory that are numbers, in order.
fn numbers(dir: &Path) -> Result<Vec<u32>, ProcessError> {
    let entries = std::fs::read_dir(dir).map_err(|source| read_error(dir.to_owned(), source))?;
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Parses `pid (comm) state ppid ...`: the name may contain spaces and parentheses, so it ends at the last one.
fn parse_stat(pid: u32, stat: &str) -> Option<Process> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, comm) = head.split_once('(')?;
    // Counted from 3, the state, as in proc_pid_stat(5).
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let main_ended = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Process {
        pid,
        parent: u32::try_from(number(4)?).ok()?,
        comm: comm.to_owned(),
        exe: None,
        started: number(22)?,
        // The main thread is among the threads until all have ended.
        ended: main_ended && number(20)? <= 1,
        main_ended,
        kernel: number(9)? & KERNEL_THREAD != 0,
    })
}

/// Returns up to five names similar to the pattern: those that contain its text, then those with a typing error.
fn near(pattern: &str, others: &[Process]) -> Vec<String> {
    let text = pattern.replace(['*', '?'], "").to_lowercase();
    let holds = |process: &&Process| !text.is_empty() && process.comm.to_lowercase().contains(&text);
    let alike = |process: &&Process| name_matching::alike(&process.comm.to_lowercase(), &text);
    let mut near: Vec<_> = others.iter().filter(holds).chain(others.iter().filter(alike)).collect();
    let mut seen = HashSet::new();
    near.retain(|process| seen.insert(process.pid));
    near.iter().take(5).map(|process| format!("{:?} ({})", process.comm, process.pid)).collect()
}

fn read_error(path: PathBuf, source: io::Error) -> ProcessError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => ProcessError::Permission { path },
        _ => ProcessError::Read { path, source },
    }
}

/// Converts a missing file, or `ESRCH` during a read, to the error for a process that has ended.
pub(super) fn gone(error: ProcessError, pid: u32) -> ProcessError {
    match &error {
        ProcessError::Read { source, .. }
            if source.kind() == io::ErrorKind::NotFound
                || source.raw_os_error() == Some(nix::libc::ESRCH) =>
        {
            ProcessError::NoSuchProcess { pid }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
