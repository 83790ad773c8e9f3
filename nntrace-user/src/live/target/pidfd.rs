//! Immediate notification of a process's end, without polling.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::process::ProcessError;

/// Handle on one process, which never refers to another one that is given the same id later.
///
/// It becomes readable when the process has ended with all its threads.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// Opens the process that has this id now. To be sure that it is the one meant, look at the process again
    /// afterwards.
    ///
    /// # Errors
    /// When there is no such process, or the kernel lacks process descriptors.
    pub fn open(pid: u32) -> Result<Self, ProcessError> {
        let Ok(raw) = libc::pid_t::try_from(pid) else {
            return Err(ProcessError::NoSuchProcess { pid });
        };
        // SAFETY: pidfd_open takes a number and flags, and reads no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, raw, 0) };
        if fd < 0 {
            let source = io::Error::last_os_error();
            return Err(match source.raw_os_error() {
                Some(libc::ESRCH) => ProcessError::NoSuchProcess { pid },
                _ => ProcessError::Watch { pid, source },
            });
        }
        // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    /// Waits until the process has ended. To be called in a tokio runtime with I/O enabled, one call at a time.
    ///
    /// # Errors
    /// When the descriptor cannot be waited on.
    ///
    /// # Panics
    /// Outside of such a runtime.
    pub async fn ended(&self) -> io::Result<()> {
        // SAFETY: the descriptor is borrowed from us for longer than `watched` lives, so it stays open and the same.
        let watched = unsafe { AsyncFd::register_with_interest(self.0.as_fd(), Interest::READABLE) }?;
        watched.readable().await?.retain_ready();
        Ok(())
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl From<PidFd> for OwnedFd {
    fn from(pidfd: PidFd) -> Self {
        pidfd.0
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[test]
    fn tells_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
            let pidfd = PidFd::open(child.id()).unwrap();
            let early = tokio::time::timeout(Duration::from_millis(20), pidfd.ended()).await;
            assert!(early.is_err());
            child.kill().unwrap();
            tokio::time::timeout(Duration::from_secs(10), pidfd.ended()).await.unwrap().unwrap();
            // Ready again on every further call.
            pidfd.ended().await.unwrap();
            child.wait().unwrap();
        });
    }

    #[test]
    fn no_such_process() {
        for pid in [u32::MAX, 0x3fff_ffff] {
            assert!(matches!(PidFd::open(pid), Err(ProcessError::NoSuchProcess { .. })));
        }
    }
}
