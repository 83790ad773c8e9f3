//! Files that the targets open, from the reports of the kernel programs, with their paths made absolute.
//!
//! A report has the path of the open file itself where the kernel describes its structures. Elsewhere the path is made out
//! from `/proc`, as soon as the report is read: the process may have closed the file by then, changed its folder, or ended.

mod report;

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use nix::libc;
use nntrace_common::opened_files::Place;

use self::report::Report;
use super::{
    clock,
    target::{Processes, mapped},
};
use crate::model::opened_files::{FileObserver, FileUse, OpenedFile};

/// Addition of the kernel to the path of a file that is gone.
const DELETED: &[u8] = b" (deleted)";

/// Follower of the files of a run, for an observer.
pub(super) struct FileFollower {
    observer: FileObserver,
    proc: PathBuf,
    /// Folder of the profiler's own files, which are not passed on.
    ours: Option<PathBuf>,
}

impl FileFollower {
    /// Creates a follower that passes on all files but those in the folder `ours`.
    pub(super) fn new(observer: FileObserver, ours: Option<&Path>) -> Self {
        Self { observer, proc: PathBuf::from("/proc"), ours: ours.map(Path::to_owned) }
    }

    /// Takes a report from the ring; one that no program of this version writes is left out.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if let Some(report) = Report::decode(bytes) {
            let file = self.opened(&report);
            self.pass_on(file);
        }
    }

    /// Takes the number of reports that found no room so far.
    pub(super) fn lost(&mut self, reports: u64) {
        self.observer.lost(reports);
    }

    /// Takes the executable of a process, and the files that it has mapped by now.
    pub(super) fn found(&mut self, processes: &Processes, pid: u32, is_target: bool) {
        let time = clock::now();
        let executable = fs::read_link(self.of_process(pid, "exe")).ok().map(alive);
        let mapped =
            mapped(processes, pid).into_iter().map(alive).filter(|path| Some(path) != executable.as_ref());
        let paths: Vec<(PathBuf, bool)> = executable
            .clone()
            .into_iter()
            .map(|path| (path, is_target))
            .chain(mapped.map(|path| (path, false)))
            .collect();
        for (path, is_executable) in paths {
            let reached_by = self.reached_by(pid, 0, &path);
            self.pass_on(OpenedFile {
                pid,
                tid: pid,
                time,
                reached_by,
                is_executable,
                ..without_call(FileUse::Mapped, path)
            });
        }
    }

    /// Passes a file on to the observer, unless it is one of the profiler's own.
    fn pass_on(&mut self, file: OpenedFile) {
        let path = file.path.as_ref().or(file.given.as_ref());
        let is_ours =
            path.is_some_and(|path| self.ours.as_ref().is_some_and(|folder| path.starts_with(folder)));
        if !is_ours {
            self.observer.file(file);
        }
    }

    /// Takes the files that were probed.
    pub(super) fn probed(&mut self, files: Vec<String>) {
        let time = clock::now();
        for path in files {
            self.observer.file(OpenedFile { time, ..without_call(FileUse::Probed, path.into()) });
        }
    }

    fn opened(&self, report: &Report<'_>) -> OpenedFile {
        let pid = report.pid;
        let error = (report.result < 0).then(|| report.result.saturating_neg());
        let (path, is_resolved_late) = self.resolve(report);
        let opened = path.as_ref().filter(|_| error.is_none());
        let reached_by = opened.and_then(|path| self.reached_by(pid, report.mount_namespace, path));
        OpenedFile {
            pid,
            tid: report.tid,
            time: report.time,
            how: FileUse::Call(report.call),
            given: report.given.map(path_of),
            is_truncated: report.is_truncated,
            path,
            is_resolved_late,
            reached_by,
            flags: (!report.call.executes()).then_some(report.flags),
            error,
            is_executable: false,
        }
    }

    /// Returns the absolute path, if it can be made out, and whether that came too late to be sure.
    fn resolve(&self, report: &Report<'_>) -> (Option<PathBuf>, bool) {
        match report.place {
            Place::File => {
                // A file without a name has a number in its place.
                let skipped = usize::from(is_without_name(report.flags));
                (Some(report.path(skipped)), false)
            }
            Place::Folder => (report.given.map(|given| plain(&report.path(0).join(path_of(given)))), false),
            Place::Unknown => match report.given.map(path_of) {
                Some(given) if given.is_absolute() && report.result < 0 => {
                    self.below_root(report.pid, &given)
                }
                Some(given) => (self.resolve_late(report, &given), true),
                None => (None, false),
            },
        }
    }

    /// Returns the path that a call that failed has meant. A root other than ours shows only while the process lives.
    fn below_root(&self, pid: u32, given: &Path) -> (Option<PathBuf>, bool) {
        let given = plain(given);
        match fs::read_link(self.of_process(pid, "root")) {
            Ok(root) if root != Path::new("/") => {
                (Some(root.join(given.strip_prefix("/").unwrap_or(&given))), true)
            }
            _ => (Some(given), false),
        }
    }

    /// Makes the path out from what the process has open now.
    fn resolve_late(&self, report: &Report<'_>, given: &Path) -> Option<PathBuf> {
        let pid = report.pid;
        if report.call.executes() && report.result >= 0 {
            return fs::read_link(self.of_process(pid, "exe")).ok().map(alive);
        }
        if report.result >= 0 && !is_without_name(report.flags) {
            let open = fs::read_link(self.of_process(pid, &format!("fd/{}", report.result))).map(alive);
            if let Ok(open) = open
                && open.file_name() == given.file_name()
            {
                return Some(open);
            }
        }
        let folder = match report.dirfd {
            _ if given.is_absolute() => Ok(PathBuf::from("/")),
            libc::AT_FDCWD => fs::read_link(self.of_process(pid, "cwd")),
            descriptor => fs::read_link(self.of_process(pid, &format!("fd/{descriptor}"))),
        };
        folder.ok().filter(|folder| folder.is_absolute()).map(|folder| plain(&folder.join(given)))
    }

    /// Returns the path by which we reach a file of a process whose mounts are not ours, as long as it lives. The number of its
    /// namespace is 0 where the kernel has not reported it.
    fn reached_by(&self, pid: u32, namespace: u32, path: &Path) -> Option<PathBuf> {
        let link = |process: &str| fs::read_link(self.proc.join(process).join("ns/mnt")).ok();
        let theirs = match namespace {
            0 => link(&pid.to_string())?,
            number => format!("mnt:[{number}]").into(),
        };
        let is_other = link("self").is_some_and(|ours| ours != theirs);
        is_other.then(|| self.of_process(pid, "root").join(path.strip_prefix("/").unwrap_or(path)))
    }

    fn of_process(&self, pid: u32, file: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(file)
    }
}

/// Whether a call opens a file that has no name, in a folder.
fn is_without_name(flags: u64) -> bool {
    let tmpfile = u64::from(libc::O_TMPFILE.cast_unsigned());
    flags & tmpfile == tmpfile
}

fn without_call(how: FileUse, path: PathBuf) -> OpenedFile {
    OpenedFile {
        pid: 0,
        tid: 0,
        time: 0,
        how,
        given: None,
        is_truncated: false,
        path: Some(path),
        is_resolved_late: false,
        reached_by: None,
        flags: None,
        error: None,
        is_executable: false,
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Returns the path that a file which is gone had.
fn alive(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(before) => path_of(before),
        None => path,
    }
}

/// Returns an absolute path without `.`, `..` and empty names, by the names alone: what leads nowhere has no links to follow.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => _ = plain.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests;
