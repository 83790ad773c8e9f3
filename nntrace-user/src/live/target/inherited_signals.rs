//! Treatment of signals that this process was started with, and hands down to a command.
//!
//! The runtime of Rust ignores `SIGPIPE` before `main`, and sets it and the mask of signals to their defaults in what a
//! `Command` starts. A program that is started with `trap '' PIPE` expects neither.

use std::{
    io, mem, ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    libc,
    sys::signal::{SigSet, SigmaskHow, pthread_sigmask},
};

/// Whether `SIGPIPE` was ignored when this process was started.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Run by the C library before the runtime of Rust is.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn note() {
        // SAFETY: zero bytes are a value of this plain structure.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: without a new action it only writes the current one, into a structure that lives until after the call.
        let known = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut action) };
        IGNORES_PIPE.store(known == 0 && action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
    note
};

/// Treatment of signals that a command is started with.
#[derive(Clone, Copy)]
pub(super) struct InheritedSignals {
    ignores_pipe: bool,
    blocked: SigSet,
}

impl InheritedSignals {
    /// Returns what the thread that starts a command would hand down.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason for.
    pub(super) fn of_thread() -> io::Result<Self> {
        Ok(Self { ignores_pipe: IGNORES_PIPE.load(Ordering::Relaxed), blocked: SigSet::thread_get_mask()? })
    }

    /// Sets it in the child, between fork and exec. Async-signal-safe.
    pub(super) fn set(self) -> io::Result<()> {
        if self.ignores_pipe {
            // SAFETY: it sets an action that is no function.
            let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            if before == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.blocked), None)?)
    }
}
