//! Signals that end a run, with its results.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
    thread,
};

use anyhow::{Context as _, Result};
use nix::{
    libc,
    sys::signal::{self, SigHandler, SigSet, Signal, raise},
};
use nntrace_user::result_folder::remove_unfinished;
use tokio::signal::unix::{self, SignalKind, signal as catch};

/// Signals by which people, shells and `timeout -s` ask a program to end: each of them would kill it otherwise.
const ENDS: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// The signals that end a run, caught from the time this is made until the program ends.
pub struct EndSignals(Vec<unix::Signal>);

impl EndSignals {
    /// Catches them, inside of a runtime. Under `nohup`, which ignores it, SIGHUP stays ignored.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn catch() -> Result<Self> {
        Self::catch_but(None)
    }

    /// Catches all but one, which means something else.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn catch_but(other: Option<libc::c_int>) -> Result<Self> {
        let ends = ENDS.into_iter().filter(|number| Some(*number) != other);
        let wanted = ends.filter(|&number| number != libc::SIGHUP || !is_ignored(number));
        let caught = wanted.map(|number| catch(SignalKind::from_raw(number)));
        Ok(Self(caught.collect::<Result<_, _>>().context("cannot catch signals")?))
    }

    /// Waits for any of them.
    pub async fn recv(&mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Each of them is polled, so that each wakes the task.
        let come =
            self.0.iter_mut().filter_map(|signal| signal.poll_recv(context).is_ready().then_some(())).count();
        if come > 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Lets signals that end this process remove what is unfinished first. For commands without an end of their own for them; before
/// any other thread is started.
///
/// # Errors
/// When the kernel refuses.
pub fn remove_unfinished_at_end() -> Result<()> {
    let wanted = ENDS.into_iter().filter(|&number| !is_ignored(number));
    let signals = wanted.filter_map(|number| Signal::try_from(number).ok()).collect::<SigSet>();
    // Threads that are started later inherit it: the signals wait for this one.
    signals.thread_block().context("cannot block signals")?;
    let wait = move || {
        let Ok(signal) = signals.wait() else { return };
        IS_ENDING.store(true, Ordering::Relaxed);
        remove_unfinished();
        // Now it ends the process.
        let _ = raise_unblocked(signal);
    };
    thread::Builder::new().name("signals".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}

/// Whether a signal is ending this process: errors are of its own making from now on.
pub fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Relaxed)
}

static IS_ENDING: AtomicBool = AtomicBool::new(false);

fn raise_unblocked(signal: Signal) -> nix::Result<()> {
    // A run before may have caught it.
    // SAFETY: the default action runs no code of this process.
    unsafe { signal::signal(signal, SigHandler::SigDfl) }?;
    SigSet::from(signal).thread_unblock()?;
    raise(signal)
}

/// Signal that has the last seconds of a run written.
pub const WRITE: libc::c_int = libc::SIGUSR2;

/// The signal that has the last seconds of a run written, where they are kept.
pub struct WriteSignal(Option<unix::Signal>);

impl WriteSignal {
    /// Catches it, inside of a runtime, if it is wanted.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn catch(is_wanted: bool) -> Result<Self> {
        let caught = is_wanted.then(|| catch(SignalKind::from_raw(WRITE))).transpose();
        Ok(Self(caught.context("cannot catch signals")?))
    }

    /// Waits for it; for ever, if it is not caught.
    pub async fn recv(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

/// SIGIO, which the kernel sends when somebody opens a probed file for writing: `F_SETLEASE` in fcntl(2).
pub struct LeaseSignal(unix::Signal);

impl LeaseSignal {
    /// Catches it, inside of a runtime.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn catch() -> Result<Self> {
        Ok(Self(catch(SignalKind::io()).context("cannot catch signals")?))
    }

    /// Waits for it.
    pub async fn recv(&mut self) {
        self.0.recv().await;
    }
}

/// Whether a signal does nothing to this process.
fn is_ignored(number: libc::c_int) -> bool {
    // SAFETY: zero bytes are a value of this plain structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action it only writes the current one, into a structure that lives until after the call.
    let known = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut action) };
    known == 0 && action.sa_sigaction == libc::SIG_IGN
}
