//! Probed files, watched for changes of their content.
//!
//! The kernel keeps the instruction that was at the place of a probe, and puts the breakpoint into every process that maps
//! the file later. Where another content has been written into the file meanwhile, that process would run the old
//! instruction in the place of the new one. So each file has a read lease where the kernel gives one (`fcntl(2)`): who opens the
//! file to write waits, for `/proc/sys/fs/lease-break-time` at most, until the probes are gone. The kernel announces him by SIGIO.
//! Without a lease, as on network file systems or without `CAP_LEASE`, the change is seen when it has happened.

use std::{
    fs::File,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nix::{
    libc,
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
};

use crate::live::target::{Content, ObjectId, PinnedFile, content, present_name};

/// Files that are probed.
#[derive(Default)]
pub(super) struct ProbedFiles(Vec<ProbedFile>);

/// File that is probed. Who wants to write to it waits until this is dropped.
pub(super) struct ProbedFile {
    id: ObjectId,
    /// The file itself, whatever its path leads to later.
    file: File,
    content: Content,
    has_lease: bool,
}

impl ProbedFile {
    /// Returns the identity of the file.
    pub(super) const fn id(&self) -> ObjectId {
        self.id
    }

    /// Returns the present name of the file.
    pub(super) fn name(&self) -> PathBuf {
        present_name(Path::new(&format!("/proc/self/fd/{}", self.file.as_raw_fd())))
    }

    /// Whether somebody waits to write to it, or has written to it.
    fn changes(&self) -> bool {
        let is_same = self.file.metadata().is_ok_and(|found| content(&found) == self.content);
        !is_same || (self.has_lease && lease(&self.file, libc::F_GETLEASE, 0) != libc::F_RDLCK)
    }
}

/// Children of ours may have the descriptor, too, so closing it need not end the lease.
impl Drop for ProbedFile {
    fn drop(&mut self) {
        if self.has_lease {
            lease(&self.file, libc::F_SETLEASE, libc::F_UNLCK);
        }
    }
}

/// Asks for the lease of a file, or changes it; returns -1 where the kernel refuses.
fn lease(file: &File, command: libc::c_int, kind: libc::c_int) -> libc::c_int {
    // SAFETY: both commands take a number, and the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), command, kind) }
}

/// Lets SIGIO, which would end this process, do nothing but interrupt a wait; whether it does.
fn survives_announcements() -> bool {
    extern "C" fn nothing(_: libc::c_int) {}
    static SURVIVES: OnceLock<bool> = OnceLock::new();
    *SURVIVES.get_or_init(|| {
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler does nothing, and one that is set later by others takes its place.
        unsafe { sigaction(Signal::SIGIO, &action) }.is_ok()
    })
}

impl ProbedFiles {
    /// Adds a file that is about to be probed, with the content that was examined, if it is not there yet; from here on nobody
    /// writes to it unnoticed.
    pub(super) fn add(&mut self, pinned: &PinnedFile) {
        if self.0.iter().any(|known| known.id == pinned.id()) {
            return;
        }
        // What cannot be opened cannot be probed.
        if let Ok(file) = File::open(&**pinned) {
            let has_lease = survives_announcements() && lease(&file, libc::F_SETLEASE, libc::F_RDLCK) == 0;
            self.0.push(ProbedFile { id: pinned.id(), file, content: pinned.content(), has_lease });
        }
    }

    /// Removes the files that somebody has written to or waits to write to, and returns them: he waits until they are dropped.
    pub(super) fn take_changed(&mut self) -> Vec<ProbedFile> {
        self.0.extract_if(.., |known| known.changes()).collect()
    }

    /// Removes all: they are probed no more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread, time::Duration};

    use super::*;

    #[test]
    fn a_file_that_is_written_to_has_changed_and_one_that_is_replaced_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut files = ProbedFiles::default();
        for name in ["same", "longer", "replaced", "gone"] {
            fs::write(path(name), "content").unwrap();
            let pinned = PinnedFile::at(&path(name)).unwrap();
            files.add(&pinned);
            files.add(&pinned);
        }
        assert_eq!(files.0.len(), 4);
        assert!(files.take_changed().is_empty());
        // Who writes waits for us, where there is a lease.
        let longer = path("longer");
        let writer = thread::spawn(move || fs::write(longer, "another content"));
        let mut changed = files.take_changed();
        while changed.is_empty() {
            thread::sleep(Duration::from_millis(1));
            changed = files.take_changed();
        }
        let names: Vec<PathBuf> = changed.iter().map(ProbedFile::name).collect();
        assert_eq!(names, [path("longer")]);
        assert!(!changed[0].has_lease || fs::read(path("longer")).unwrap() == b"content");
        drop(changed);
        writer.join().unwrap().unwrap();
        fs::write(path("new"), "another content").unwrap();
        fs::rename(path("new"), path("replaced")).unwrap();
        fs::remove_file(path("gone")).unwrap();
        assert!(files.take_changed().is_empty());
        files.clear();
        // Written to between a look into it and the probe.
        let examined = PinnedFile::at(&path("same")).unwrap();
        let mut files = ProbedFiles::default();
        fs::write(path("same"), "another content").unwrap();
        files.add(&examined);
        assert_eq!(files.take_changed().len(), 1);
    }
}
