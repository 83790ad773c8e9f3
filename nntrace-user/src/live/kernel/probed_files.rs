//! Probed files, watched for changes of their content.
//!
//! The kernel keeps the instruction that was at the place of a probe, and puts the breakpoint into every process that maps
//! the file later. Where another content has been written into the file meanwhile, that process would run the old
//! instruction in the place of the new one. So we take a read lease on each file where possible (`fcntl(2)`): an open for
//! writing then blocks, for at most `/proc/sys/fs/lease-break-time`, until the probes are removed. The kernel notifies us with
//! SIGIO. Without a lease (network file systems, no `CAP_LEASE`), we notice a change only afterwards.

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

/// Probed files.
#[derive(Default)]
pub(super) struct ProbedFiles {
    probed: Vec<ProbedFile>,
    /// Files whose probes were removed: open, so that no other file gets their inode numbers.
    left: Vec<ProbedFile>,
}

/// Probed file. Writers block until it is released, or dropped.
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

    /// Lets writers go on. Our children may share the descriptor, so closing it need not release the lease.
    fn release(&mut self) {
        if self.has_lease {
            self.has_lease = false;
            lease(&self.file, libc::F_SETLEASE, libc::F_UNLCK);
        }
    }

    /// Whether somebody is waiting to write to it, or has written to it.
    fn is_changing(&self) -> bool {
        let is_same = self.file.metadata().is_ok_and(|found| content(&found) == self.content);
        !is_same || (self.has_lease && lease(&self.file, libc::F_GETLEASE, 0) != libc::F_RDLCK)
    }
}

impl Drop for ProbedFile {
    fn drop(&mut self) {
        self.release();
    }
}

/// Gets or sets the lease of a file; returns -1 on failure.
fn lease(file: &File, command: libc::c_int, kind: libc::c_int) -> libc::c_int {
    // SAFETY: both commands take a number, and the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), command, kind) }
}

/// Gives SIGIO, which would kill this process, a handler that does nothing; returns whether it has one.
fn catch_sigio() -> bool {
    extern "C" fn nothing(_: libc::c_int) {}
    static IS_CAUGHT: OnceLock<bool> = OnceLock::new();
    *IS_CAUGHT.get_or_init(|| {
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler does nothing; one that is there already is put back below, and one that is set later replaces it.
        let Ok(before) = (unsafe { sigaction(Signal::SIGIO, &action) }) else { return false };
        if matches!(before.handler(), SigHandler::Handler(_) | SigHandler::SigAction(_)) {
            // SAFETY: it was the action of this signal before.
            return unsafe { sigaction(Signal::SIGIO, &before) }.is_ok();
        }
        true
    })
}

impl ProbedFiles {
    /// Adds a file that is about to be probed, with the content that was examined, if it is not there yet; from here on nobody
    /// writes to it unnoticed.
    pub(super) fn add(&mut self, pinned: &PinnedFile) {
        if self.probed.iter().any(|known| known.id == pinned.id()) {
            return;
        }
        // What cannot be opened cannot be probed.
        if let Ok(file) = File::open(&**pinned) {
            let has_lease = catch_sigio() && lease(&file, libc::F_SETLEASE, libc::F_RDLCK) == 0;
            self.probed.push(ProbedFile { id: pinned.id(), file, content: pinned.content(), has_lease });
        }
    }

    /// Removes the files that were written to or that somebody is waiting to write to, and returns them.
    pub(super) fn take_changed(&mut self) -> Vec<ProbedFile> {
        self.probed.extract_if(.., |known| known.is_changing()).collect()
    }

    /// Lets writers go on, as the probes on these files are gone.
    pub(super) fn release(&mut self, mut changed: Vec<ProbedFile>) {
        changed.iter_mut().for_each(ProbedFile::release);
        self.left.append(&mut changed);
    }

    /// Removes all files, as their probes are gone.
    pub(super) fn clear(&mut self) {
        self.probed.clear();
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
        assert_eq!(files.probed.len(), 4);
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
        files.release(changed);
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
