//! Taking the probes on marks away, also where a thread of a target does not get out of one.
//!
//! A program that waits for the page of a text waits for whoever brings it: a file system in user space may never answer.
//! The kernel takes no probe away before its programs have ended, and whoever asks for that waits as well, without a
//! signal that could end it. So who waits is looked up first. If somebody still does after a while, the probes stay: a process
//! of their own holds them, which ends when the page has come, and we go our way.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, RawFd},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use aya::maps::HashMap;
use nix::{
    errno::Errno,
    libc,
    unistd::{ForkResult, fork},
};
use nntrace_common::counts::PageWait;

use super::{Kernel, KernelError};
use crate::live::target::{PidFd, ProcessError};

/// How long a thread may wait for a page before we go without it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks. Also what a program takes at most from its look at the clock to writing down that it waits.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread in a mark's program that waits for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StalledThread {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name; empty when it cannot be read.
    pub comm: String,
}

impl StalledThread {
    /// Its meaning, for people.
    pub(in crate::live) fn note(&self) -> String {
        let Self { pid, tid, comm } = self;
        format!(
            "thread {tid} ({comm}) of process {pid} waits for the memory page that holds the text of its mark, which is not \
             counted: whoever provides that page (a file system in user space, userfaultfd) does not answer. Until it does, the \
             kernel keeps the probes, without effect, and a process nntrace-probes with them"
        )
    }
}

impl Kernel {
    /// Takes the probes on marks away, once the window is over: no thread begins to wait for a page any more.
    ///
    /// Returns the threads of which one has to be waited for longer than is sensible; the probes stay then, without effect,
    /// until a process that is left behind is rid of them.
    ///
    /// # Errors
    /// When threads stall, and no process can be left behind: then whoever drops this waits for them.
    pub(crate) fn detach_marks(&mut self) -> Result<Vec<StalledThread>, KernelError> {
        self.writes.detach(&mut self.object);
        if self.functions.may_stall() {
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

    /// The threads that wait for a page now.
    fn stalled_threads(&self) -> Result<Vec<StalledThread>, KernelError> {
        let waits: HashMap<_, u32, PageWait> = self.object.table("PAGE_WAITS")?;
        let threads = waits.iter().flatten().map(|(tid, wait)| {
            let comm = fs::read_to_string(format!("/proc/{}/task/{tid}/comm", wait.tgid));
            StalledThread { pid: wait.tgid, tid, comm: comm.unwrap_or_default().trim_end().to_owned() }
        });
        Ok(threads.collect())
    }
}

/// Leaves a process behind that holds everything that the kernel lets go of only when stalled threads do, and nothing else.
/// It begins to let go when this process has ended: whoever closes a probe last waits.
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
                // No signal of a terminal's is meant for it.
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

/// Whether the kernel makes whoever closes this last wait for programs that run.
fn is_probe(name: &Path) -> bool {
    ["anon_inode:bpf_link", "anon_inode:[perf_event]"].iter().any(|probe| name.as_os_str() == *probe)
}

/// Our open descriptors whose names are asked for.
fn open_descriptors(wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // The one that this reads by is gone when it is asked for.
        if let (Some(number), Ok(name)) = (number, fs::read_link(entry.path()))
            && wanted(&name)
        {
            found.push(number);
        }
    }
    Ok(found)
}
