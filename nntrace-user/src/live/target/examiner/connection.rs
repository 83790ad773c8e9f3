//! Connection to the server that has files parsed.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt as _, ExitStatusExt as _},
        },
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use thiserror::Error;

use super::{
    ARGUMENT,
    folders::{Folders, LEVELS},
    messages::{Kind, Message, damaged, receive_until, send_raw, send_until},
};

/// Time for a file at most.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Time for the start of the server, and to hear how a process ended that has answered or closed its socket, at most.
const SHORT: Duration = Duration::from_secs(10);

/// Connection to the server; dropping it ends the server, and the process that parses a file for it.
pub(super) struct Connection {
    server: Child,
    control: UnixStream,
    time_limit: Duration,
}

/// Reason why a question was not answered.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// The process that had the question ended without an answer. The server has another one for the next question.
    #[error("the process that parses it ended: {}", cause(*.0))]
    Ended(ExitStatus),
    /// It took too long.
    #[error("it takes more than {} s to parse", .0.as_secs())]
    TookTooLong(Duration),
    /// It could not be asked.
    #[error("the process that parses files cannot be asked: {0}")]
    Io(#[from] io::Error),
}

fn cause(status: ExitStatus) -> String {
    match status.signal().map(Signal::try_from) {
        Some(Ok(Signal::SIGSYS)) => "it made a system call that it may not make (SIGSYS)".to_owned(),
        Some(Ok(Signal::SIGABRT)) => "it had no memory left, or aborted (SIGABRT)".to_owned(),
        Some(Ok(signal)) => signal.to_string(),
        _ => status.to_string(),
    }
}

impl Connection {
    /// Starts a server that runs this program.
    ///
    /// # Errors
    /// When it does not start, or cannot give up its rights.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        Self::start_with(Command::new(program).arg(ARGUMENT), &[], TIME_LIMIT)
    }

    /// Starts a command as the server, with this environment, which has this long for each file.
    pub(super) fn start_with(
        command: &mut Command,
        environment: &[(&str, &str)],
        time_limit: Duration,
    ) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        command
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // No folder stays in use.
            .current_dir("/")
            // Keys of the terminal, such as Ctrl-C, are for this process.
            .process_group(0);
        let server = command.spawn()?;
        // What was handed to it would keep the socket open after its end.
        command.stdin(Stdio::null());
        let mut connection = Self { server, control, time_limit };
        match receive_until(&connection.control, Instant::now() + SHORT) {
            Ok(Message { kind: Kind::Ready, .. }) => Ok(connection),
            Ok(message @ Message { kind: Kind::Refused, .. }) => {
                Err(io::Error::other(message.parsed::<String>()?))
            }
            Ok(_) => Err(damaged()),
            Err(error) if is_gone(&error) => match connection.ended_soon() {
                Some(status) => Err(io::Error::other(format!("it ended at once: {}", cause(status)))),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Returns the id of the server.
    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Returns the status of the server, which has closed its socket; `None` if it lives on.
    fn ended_soon(&mut self) -> Option<ExitStatus> {
        /// Time between two looks, and their number.
        const LOOKS: (Duration, usize) = (Duration::from_millis(10), 100);
        (0..LOOKS.1).find_map(|_| {
            let status = self.server.try_wait().ok()?;
            if status.is_none() {
                thread::sleep(LOOKS.0);
            }
            status
        })
    }

    /// Whether the server has not ended.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.server.try_wait(), Ok(None))
    }

    /// Asks for an examination of a file.
    ///
    /// # Errors
    /// When the question is not answered. Unless a process has [ended](Failure::Ended), the connection must not be used afterwards.
    pub(super) fn ask(
        &self,
        file: &File,
        folders: &dyn Folders,
        question: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let end = Instant::now() + self.time_limit;
        let timed = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::TookTooLong(self.time_limit),
            _ if is_gone(&error) => Failure::Io(io::Error::other("their server has ended")),
            _ => Failure::Io(error),
        };
        let answer = self.exchange(file, folders, question, end).map_err(timed)?;
        let ended = receive_until(&self.control, end.max(Instant::now() + SHORT)).map_err(timed)?;
        if ended.kind == Kind::Refused {
            return Err(io::Error::other(ended.parsed::<String>()?).into());
        }
        if ended.kind != Kind::Ended {
            return Err(damaged().into());
        }
        match (answer, ExitStatus::from_raw(ended.parsed()?)) {
            (Some(answer), status) if status.success() => Ok(answer),
            (_, status) => Err(Failure::Ended(status)),
        }
    }

    /// Returns the answer to a question; `None` if the process that had it closed the socket without one.
    fn exchange(
        &self,
        file: &File,
        folders: &dyn Folders,
        question: &[u8],
        end: Instant,
    ) -> io::Result<Option<Vec<u8>>> {
        let (stream, theirs) = UnixStream::pair()?;
        send_raw(&self.control, (Kind::Question, question), &[file.as_fd(), theirs.as_fd()], end)?;
        drop(theirs);
        for _ in 0..=LEVELS {
            let message = match receive_until(&stream, end) {
                Err(error) if is_gone(&error) => return Ok(None),
                message => message?,
            };
            match message.kind {
                Kind::Answer => return Ok(Some(message.content)),
                Kind::NamesWanted => {
                    let names = folders.names(message.parsed()?);
                    match send_until(&stream, (Kind::Names, &names), &[], end) {
                        Err(error) if is_gone(&error) => return Ok(None),
                        sent => sent?,
                    }
                }
                _ => return Err(damaged()),
            }
        }
        Err(damaged())
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The process that parses a file for it is killed with it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
