//! Detaching of the mark probes, even while a thread of a target stays inside one.
//!
//! A program that waits for the page of a text depends on the provider of that page: a file system in user space may
//! never answer. The kernel removes no probe before its programs have finished, and the caller waits for that
//! uninterruptibly. So waiting threads are looked up first. If any remain after a while, the probes stay: a process
//! of their own holds them, and ends when the page has arrived, while we carry on.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, RawFd},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use aya::maps::HashMap;
use nix::{
    errno::Errno,
    libc,
    unistd::{ForkResult, fork},
};
use nntrace_common::event_counts::PageWait;

use super::{Kernel, KernelError, probed_files::ProbedFile};
use crate::live::target::{PidFd, ProcessError};

/// Time that a thread may wait for a page before we carry on without it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two looks. Also the time from a program's reading of the clock to recording its wait, at most.
const PAUSE: Duration = Duration::from_millis(2);

/// Thread in a mark's program that waits for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StalledThread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread; empty when it cannot be read.
    pub comm: String,
}

impl StalledThread {
    /// Returns the note for the user.
    pub(in crate::live) fn note(&self) -> String {
        let Self { pid, tid, comm } = self;
        format!(
            "thread {tid} ({comm}) of process {pid} waits for the memory page that holds the text of its mark, which is not \
             counted: whoever provides that page (a file system in user space, userfaultfd) does not answer. Until it does, the \
             kernel keeps the probes, without effect, and a process nntrace-probes with them"
        )
    }
}

/// Drops what detaches a probe, in a thread: the kernel waits for the readers of its lists, for tens of milliseconds. Without
/// a thread it waits here.
pub(super) fn in_background(probe: impl Send + 'static) {
    let _ = thread::Builder::new().name("nntrace-detach".to_owned()).spawn(move || drop(probe));
}

impl Kernel {
    /// Detaches the probes on files that have been written to since they were probed, or are about to be; returns the names of these.
    pub(crate) fn detach_changed(&mut self) -> Vec<PathBuf> {
        let changed = self.probed_files.take_changed();
        for file in &changed {
            self.functions.detach_file(&mut self.object, file.id());
            self.engines.detach_file(&mut self.object, file.id());
            self.calls.detach_file(&mut self.object, file.id());
        }
        let names = changed.iter().map(ProbedFile::name).collect();
        self.probed_files.release(changed);
        names
    }

    /// Detaches the mark probes once the window is over, when no further thread starts to wait for a page.
    ///
    /// Returns the threads that keep waiting, of which at least one would have to be waited for too long; the probes
    /// stay then, without effect, until a process that is left behind removes them.
    ///
    /// # Errors
    /// When threads stall, and no process can be left behind: then dropping this waits for them.
    pub(crate) fn detach_marks(&mut self) -> Result<Vec<StalledThread>, KernelError> {
        self.writes.detach(&mut self.object);
        self.driver_calls.detach(&mut self.object);
        if self.functions.may_stall() || self.calls.may_stall() {
            let stalled = self.wait_for_pages()?;
            if !stalled.is_empty() {
                leave_probes_behind().map_err(|source| KernelError::File {
                    path: "/proc/self/fd, to leave the probes of stalled threads behind".into(),
                    source,
                })?;
                return Ok(stalled);
            }
        }
        self.functions.detach(&mut self.object);
        self.engines.detach(&mut self.object);
        self.calls.detach(&mut self.object);
        self.counters.detach(&mut self.object);
        self.probed_files.clear();
        Ok(Vec::new())
    }

    /// Waits until no thread waits for a page; returns those that still do after [`PATIENCE`].
    fn wait_for_pages(&self) -> Result<Vec<StalledThread>, KernelError> {
        let begun = Instant::now();
        loop {
            thread::sleep(PAUSE);
            let stalled = self.stalled_threads()?;
            if stalled.is_empty() || begun.elapsed() > PATIENCE {
                return Ok(stalled);
            }
        }
    }

    /// Returns the threads that currently wait for a page.
    fn stalled_threads(&self) -> Result<Vec<StalledThread>, KernelError> {
        let waits: HashMap<_, u32, PageWait> = self.object.table("PAGE_WAITS")?;
        let threads = waits.iter().flatten().map(|(tid, wait)| {
            let comm = fs::read_to_string(format!("/proc/{}/task/{tid}/comm", wait.tgid));
            StalledThread { pid: wait.tgid, tid, comm: comm.unwrap_or_default().trim_end().to_owned() }
        });
        Ok(threads.collect())
    }
}

/// Leaves a process after that holds only the descriptors that the kernel cannot release before stalled threads
/// finish. It begins to release them when this process has ended: the last one to close a probe waits.
fn leave_probes_behind() -> io::Result<()> {
    let end = PidFd::open(std::process::id()).map_err(|error| match error {
        ProcessError::Watch { source, .. } => source,
        error => io::Error::other(error.to_string()),
    })?;
    let others = open_descriptors(|name| !is_probe(name))?;
    // SAFETY: the child calls system calls only, and allocates nothing: other threads may have held any lock.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => Ok(()),
        ForkResult::Child => {
            // SAFETY: plain system calls on numbers, and on structures that live through the call.
            unsafe {
                // Detached from the terminal, whose signals are not meant for it.
                libc::setsid();
                libc::prctl(libc::PR_SET_NAME, c"nntrace-probes".as_ptr());
                for descriptor in others {
                    if descriptor != end.as_raw_fd() {
                        libc::close(descriptor);
                    }
                }
                let mut ended = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                while libc::poll(&raw mut ended, 1, -1) < 0 && Errno::last() == Errno::EINTR {}
                libc::_exit(0)
            }
        }
    }
}

/// Whether the kernel makes the last one to close this descriptor wait for running programs.
fn is_probe(name: &Path) -> bool {
    ["anon_inode:bpf_link", "anon_inode:[perf_event]"].iter().any(|probe| name.as_os_str() == *probe)
}

/// Returns our open descriptors whose names are `wanted`.
fn open_descriptors(wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // The descriptor of this listing is gone when its name is read.
        if let (Some(number), Ok(name)) = (number, fs::read_link(entry.path()))
            && wanted(&name)
        {
            found.push(number);
        }
    }
    Ok(found)
}
