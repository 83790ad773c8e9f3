//! Programs that a test starts, and that end with it at the latest.

use std::{
    io::{Read, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{self, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::{
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};

use crate::{surroundings, wait::PATIENCE};

/// Running program, in a process group of its own. When it is dropped, the whole group is killed.
pub struct Child {
    name: String,
    process: process::Child,
    stdout: Stream,
    stderr: Stream,
    /// Receives a message once when the program has ended; it is not reaped by then.
    ended: Receiver<()>,
    reaped: bool,
}

/// Exit status and output of a program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// Everything written to stdout.
    pub stdout: Vec<u8>,
    /// Everything written to stderr.
    pub stderr: String,
}

impl Ended {
    /// Returns the exit code; `None` when a signal killed the program.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns stdout as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns itself, if the program ended with this exit code.
    ///
    /// # Errors
    /// When it ended otherwise; the message contains its stderr.
    pub fn expect_code(self, code: i32) -> Result<Self> {
        if self.code() == Some(code) {
            return Ok(self);
        }
        bail!("exit code {code} was expected, not {}; stderr:\n{}", self.status, self.stderr)
    }
}

impl Child {
    /// Starts a program in the [surroundings](surroundings::set) of tests, with its input and outputs piped to us.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut process =
            surroundings::set(command).spawn().with_context(|| format!("cannot start {name}"))?;
        let stdout = Stream::follow(process.stdout.take());
        let stderr = Stream::follow(process.stderr.take());
        let (sender, ended) = mpsc::channel();
        let id = Id::Pid(pid_of(&process));
        thread::spawn(move || {
            // Leaves it to be reaped, so that its process id is not reused before. An error means that it was reaped.
            let _ = waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
            // Nobody may wait for the end.
            let _ = sender.send(());
        });
        Ok(Self { name, process, stdout, stderr, ended, reaped: false })
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// When it cannot be started, or does not end in time.
    pub fn run(command: &mut Command) -> Result<Ended> {
        Self::start(command)?.wait()
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// When it has ended and was reaped.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(pid_of(&self.process), signal).with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Writes a line to its stdin.
    ///
    /// # Errors
    /// When the program has closed it.
    pub fn send_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.process.stdin.as_mut().context("stdin is open until the child is dropped")?;
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .with_context(|| format!("{} does not read", self.name))
    }

    /// Waits until the program has written `count` complete lines to stdout, and returns the first of them.
    ///
    /// # Errors
    /// When it ends before, or does not write them in time.
    pub fn lines(&self, count: usize) -> Result<Vec<String>> {
        let seen = self.stdout.wait_for(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            let whole: Vec<String> = text
                .split_inclusive('\n')
                .filter_map(|line| line.strip_suffix('\n'))
                .map(Into::into)
                .collect();
            (whole.len() >= count).then(|| whole.into_iter().take(count).collect())
        });
        seen.with_context(|| {
            format!("{} wrote no {count} lines; stderr:\n{}", self.name, lossy(&self.stderr.so_far()))
        })
    }

    /// Waits until the program has written this to stderr, with a line end after it, and returns all that it wrote there.
    ///
    /// # Errors
    /// When it ends before, or does not write it in time.
    pub fn error_text(&self, part: &str) -> Result<String> {
        let seen = self.stderr.wait_for(|bytes| {
            let text = lossy(bytes);
            let rest = text.find(part).map(|at| &text[at..]);
            rest.is_some_and(|rest| rest.contains('\n')).then_some(text)
        });
        seen.with_context(|| format!("{} did not write {part:?} to stderr", self.name))
    }

    /// Waits for the end of the program. Processes that it started and left behind are killed.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn wait(self) -> Result<Ended> {
        self.wait_for(PATIENCE)
    }

    /// Like [`Child::wait`], with another limit.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn wait_for(mut self, limit: Duration) -> Result<Ended> {
        if self.ended.recv_timeout(limit).is_err() {
            let (out, err) = (lossy(&self.stdout.so_far()), lossy(&self.stderr.so_far()));
            bail!("{} still runs after {limit:?}; stdout:\n{out}\nstderr:\n{err}", self.name);
        }
        let status = self.reap().with_context(|| format!("cannot wait for {}", self.name))?;
        let stdout = self.stdout.all().with_context(|| format!("stdout of {}", self.name))?;
        let stderr = self.stderr.all().with_context(|| format!("stderr of {}", self.name))?;
        Ok(Ended { status, stdout, stderr: lossy(&stderr) })
    }

    /// Kills its group while the group's id is still taken; then waits for the program.
    fn reap(&mut self) -> std::io::Result<ExitStatus> {
        self.reaped = true;
        // A group without a living process takes no signal.
        let _ = killpg(pid_of(&self.process), Signal::SIGKILL);
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            // A failure cannot be handled here.
            let _ = self.reap();
        }
    }
}

/// Returns the signal that ended a program; `None` when it exited.
#[must_use]
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

fn pid_of(process: &process::Child) -> Pid {
    Pid::from_raw(process.id().cast_signed())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Collector of a pipe's output.
struct Stream(Arc<(Mutex<Collected>, Condvar)>);

#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    closed: bool,
}

impl Stream {
    /// Reads to the end in a thread of its own, so that the writer never waits.
    fn follow(pipe: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::new((Mutex::new(Collected::default()), Condvar::new()));
        let stream = Self(Arc::clone(&shared));
        thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            let mut pipe = pipe;
            loop {
                let read = pipe.as_mut().map_or(0, |pipe| pipe.read(&mut chunk).unwrap_or(0));
                let mut collected = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                collected.bytes.extend_from_slice(&chunk[..read]);
                collected.closed = read == 0;
                shared.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        stream
    }

    fn so_far(&self) -> Vec<u8> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).bytes.clone()
    }

    /// Waits until the output contains the wanted part.
    fn wait_for<T>(&self, mut look: impl FnMut(&[u8]) -> Option<T>) -> Result<T> {
        self.wait(|collected| match look(&collected.bytes) {
            Some(found) => Some(Ok(found)),
            None => collected.closed.then(|| bail!("it ended after:\n{}", lossy(&collected.bytes))),
        })?
    }

    /// Waits for the end, and returns everything.
    fn all(&self) -> Result<Vec<u8>> {
        self.wait(|collected| collected.closed.then(|| collected.bytes.clone()))
    }

    fn wait<T>(&self, mut look: impl FnMut(&Collected) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut collected = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = look(&collected) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("after {PATIENCE:?} there was only:\n{}", lossy(&collected.bytes));
            }
            collected = self.0.1.wait_timeout(collected, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
