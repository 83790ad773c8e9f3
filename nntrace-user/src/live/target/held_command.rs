//! A command held by ptrace, and its release.
//!
//! ```text
//!   Launch::spawn ──► Held: stopped at exec ──► run_until_signal ──► stopped again ──► release ──► Running
//!                        │                         │ timed out: runs, still held ───────┘
//!                        └─ dropped: killed        └ ended: release gives its status
//! ```

use std::io;
use std::marker::PhantomData;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::launch::error::{LaunchError, shell_code};

/// Pause between two looks at a held process that runs: it reaches the point waited for within milliseconds.
const POLL: Duration = Duration::from_micros(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stopped,
    Running,
    Ended(ExitStatus),
    LetGo,
}

/// Command that runs only on request.
///
/// It belongs to the thread that started it: ptrace takes requests from no other, and the type cannot be sent to one.
/// If it is dropped, or if we are killed, the command is killed: none is left behind stopped. Only the process itself
/// is held, not the ones it starts; before its first instruction it has started none.
#[derive(Debug)]
pub struct Held {
    pid: Pid,
    state: State,
    own_thread: PhantomData<*const ()>,
}

/// Outcome of running a held command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldEvent {
    /// The signal came. The command is stopped, and will not receive it.
    Signalled,
    /// The time is up. The command runs, and is still held.
    TimedOut,
    /// The command has ended.
    Ended(ExitStatus),
}

impl Held {
    /// Takes over a child that has asked to be traced, and waits until it has executed its program.
    pub(super) fn at_exec(child: u32) -> Result<Self, LaunchError> {
        let mut held =
            Self { pid: Pid::from_raw(child.cast_signed()), state: State::Running, own_thread: PhantomData };
        match held.run_on(libc::SIGTRAP, None)? {
            HeldEvent::Ended(status) => return Err(LaunchError::EndedEarly { status }),
            HeldEvent::Signalled | HeldEvent::TimedOut => {}
        }
        // It is killed when we end, and a further exec stops it by an event of its own, not by a SIGTRAP like this
        // one.
        let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACEEXEC;
        ptrace::setoptions(held.pid, options)
            .map_err(|error| held.lost("stop at its first instruction", error))?;
        Ok(held)
    }

    /// Returns the process id.
    #[must_use]
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw().cast_unsigned()
    }

    /// Lets the command run until it is sent a signal, which it will not receive. All other signals are passed on to
    /// it.
    ///
    /// Meant for a probe at the entry point of its program that sends `SIGSTOP`: by then the dynamic loader has
    /// mapped the libraries, and no mark was written yet. Another call after a timeout continues to wait.
    ///
    /// # Errors
    /// When the kernel no longer knows it as held.
    pub(crate) fn run_until_signal(
        &mut self,
        signal: Signal,
        timeout: Duration,
    ) -> Result<HeldEvent, LaunchError> {
        if let State::Ended(status) = self.state {
            return Ok(HeldEvent::Ended(status));
        }
        if self.state == State::Stopped {
            self.resume(0)?;
        }
        self.run_on(signal as libc::c_int, Instant::now().checked_add(timeout))
    }

    /// Releases the command. From here on it runs as if it had never been held, even when we end.
    ///
    /// # Errors
    /// When the kernel no longer knows it as held. It is killed then.
    pub fn release(mut self) -> Result<Running, LaunchError> {
        if self.state == State::Running {
            self.stop()?;
        }
        if self.state == State::Stopped {
            match ptrace::detach(self.pid, None) {
                Ok(()) => self.state = State::LetGo,
                // It was killed while it was stopped: no signal has this number, so this waits for its end.
                Err(Errno::ESRCH) => _ = self.run_on(0, None)?,
                Err(error) => return Err(self.lost("run on", error)),
            }
        }
        let status = if let State::Ended(status) = self.state { Some(status) } else { None };
        Ok(Running { pid: self.pid, status })
    }

    /// Stops the command, as ptrace can only detach from a stopped process.
    fn stop(&mut self) -> Result<(), LaunchError> {
        // A process that has just ended takes no signal, which is noticed below.
        let _ = kill(self.pid, Signal::SIGSTOP);
        self.run_on(libc::SIGSTOP, None)?;
        if self.state == State::Stopped {
            // Takes back a second SIGSTOP that may be pending: both a probe's and ours may have been sent.
            let _ = kill(self.pid, Signal::SIGCONT);
        }
        Ok(())
    }

    /// Waits for a stop by this signal, and passes all others on.
    fn run_on(&mut self, signal: libc::c_int, deadline: Option<Instant>) -> Result<HeldEvent, LaunchError> {
        self.state = State::Running;
        let flags = if deadline.is_some() { libc::WNOHANG } else { 0 };
        loop {
            let waited =
                wait(self.pid, flags | libc::__WALL).map_err(|error| self.lost("wait for it", error))?;
            let Some(status) = waited else {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(HeldEvent::TimedOut);
                }
                std::thread::sleep(POLL);
                continue;
            };
            let Some(stopped_by) = status.stopped_signal() else {
                self.state = State::Ended(status);
                return Ok(HeldEvent::Ended(status));
            };
            // The event of an exec is a stop without a signal to pass on.
            let is_event = status.into_raw() >> 16 != 0;
            if stopped_by == signal && !is_event {
                self.state = State::Stopped;
                return Ok(HeldEvent::Signalled);
            }
            self.resume(if is_event { 0 } else { stopped_by })?;
        }
    }

    /// Resumes the command with a signal, or with none.
    fn resume(&mut self, signal: libc::c_int) -> Result<(), LaunchError> {
        const NOWHERE: libc::c_long = 0;
        // By number, as real-time signals have no name in nix.
        let data = libc::c_long::from(signal);
        // SAFETY: PTRACE_CONT takes a process and a signal's number, and touches no memory of ours.
        let result = unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid.as_raw(), NOWHERE, data) };
        let error = io::Error::last_os_error();
        // A process that was killed while it was stopped is gone for ptrace: waiting for it gives its exit status.
        if result != 0 && error.raw_os_error() != Some(libc::ESRCH) {
            return Err(self.lost("run on", error));
        }
        self.state = State::Running;
        Ok(())
    }

    fn lost(&self, step: &'static str, source: impl Into<io::Error>) -> LaunchError {
        LaunchError::Trace { pid: self.pid(), step, source: source.into() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if matches!(self.state, State::Ended(_) | State::LetGo) {
            return;
        }
        // SIGKILL also ends what is stopped. Nothing more can be done if even that fails.
        let _ = kill(self.pid, Signal::SIGKILL);
        while let Ok(Some(status)) = wait(self.pid, libc::__WALL) {
            if status.stopped_signal().is_none() {
                return;
            }
        }
    }
}

/// Launched command that runs freely. It runs on when this is dropped.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    status: Option<ExitStatus>,
}

impl Running {
    /// Returns the process id, which is not reused before the exit status was awaited.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().cast_unsigned()
    }

    /// Returns the exit status if the command has ended. To be called when a [`PidFd`](super::PidFd) is ready, or now
    /// and then.
    ///
    /// # Errors
    /// When something else in this process has awaited it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = wait(self.pid, libc::WNOHANG)?;
        }
        Ok(self.status)
    }

    /// Waits for the end of the command.
    ///
    /// # Errors
    /// When something else in this process has awaited it.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            self.status = wait(self.pid, 0)?;
        }
    }

    /// Returns the exit code as a shell does, if the command has ended and that was awaited.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.status.map(shell_code)
    }

    /// Sends a signal to the command, unless it has ended.
    ///
    /// # Errors
    /// When it may not be signalled, as it now runs as another user.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.try_wait()?.is_none() {
            kill(self.pid, signal)?;
        }
        Ok(())
    }
}

/// Returns the next change of a child: `None` if `WNOHANG` is given and there is none.
fn wait(pid: Pid, flags: libc::c_int) -> io::Result<Option<ExitStatus>> {
    loop {
        let mut status = 0;
        // Not nix's: it fails on real-time signals, and the change is lost.
        // SAFETY: waitpid writes one integer, to a variable of ours.
        match unsafe { libc::waitpid(pid.as_raw(), &raw mut status, flags) } {
            0 => return Ok(None),
            1.. => return Ok(Some(ExitStatus::from_raw(status))),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
