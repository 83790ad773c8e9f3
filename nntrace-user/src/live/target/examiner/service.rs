//! Server of the process that has files parsed: each question gets a process of its own, so that no file has a part in what is
//! found in another one.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs::File,
    io,
    os::{
        fd::{AsFd as _, FromRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{self, AssertUnwindSafe},
    process,
    time::Instant,
};

use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{ForkResult, Pid, fork, getpid},
};
use serde_json::Value;

use super::super::pidfd::PidFd;
use super::{
    Examination, confinement,
    connection::TIME_LIMIT,
    examine_here,
    folders::{Folders, LEVELS},
    messages::{Kind, Message, damaged, receive_until, receive_with_descriptors, send_raw, send_until},
};

/// Exit status of a process that could not answer.
const FAILED: libc::c_int = 101;

/// Examination that waits for its file: it returns findings as JSON, or `None` where they have no such form.
pub(in crate::live) type Prepared = Box<dyn FnOnce(&File, &dyn Folders) -> Option<Vec<u8>>>;

/// Prepares an examination, by its name; `None` if no examination has this name, or the question is damaged.
pub(in crate::live) type Prepare = fn(&str, Value) -> Option<Prepared>;

/// Prepares an examination as a question says; `None` if the question is damaged.
pub(in crate::live) fn prepared<E: Examination + 'static>(question: Value) -> Option<Prepared> {
    let what: E = serde_json::from_value(question).ok()?;
    Some(Box::new(move |file, folders| serde_json::to_vec(&examine_here(file, folders, &what)).ok()))
}

/// Has files parsed for the process at the other end of the standard input, after all rights were given up, until that closes
/// the socket.
///
/// # Errors
/// When rights cannot be given up, or a message is damaged.
pub(in crate::live) fn serve(prepare: Prepare) -> io::Result<()> {
    // SAFETY: the standard input is this function's alone: nothing in this process reads it.
    let control = UnixStream::from(unsafe { OwnedFd::from_raw_fd(libc::STDIN_FILENO) });
    let soon = || Instant::now() + TIME_LIMIT;
    if let Err(error) = confinement::give_up_rights() {
        send_until(&control, (Kind::Refused, &error.to_string()), &[], soon())?;
        return Err(error);
    }
    send_until(&control, (Kind::Ready, &()), &[], soon())?;
    while let Some(message) = receive_with_descriptors(&control)? {
        let (name, question): (String, Value) = message.parsed()?;
        let Message { kind: Kind::Question, descriptors, .. } = message else { return Err(damaged()) };
        let Ok([file, stream]) = <[OwnedFd; 2]>::try_from(descriptors) else { return Err(damaged()) };
        let work = prepare(&name, question).ok_or_else(damaged)?;
        match in_a_child(&control, || answer(&UnixStream::from(stream), &File::from(file), work)) {
            Ok(status) => send_until(&control, (Kind::Ended, &status), &[], soon())?,
            Err(error) => {
                let text = format!("it can make no process: {error}");
                return send_until(&control, (Kind::Refused, &text), &[], soon());
            }
        }
    }
    Ok(())
}

/// Does work in a child without the socket of the server; returns the status with which that ended, as `waitpid` has it.
fn in_a_child(control: &UnixStream, work: impl FnOnce() -> io::Result<()>) -> io::Result<libc::c_int> {
    let server = getpid();
    // SAFETY: this process has one thread, so that its child may do whatever it may.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let done = panic::catch_unwind(AssertUnwindSafe(|| {
                confinement::confine_child(server, control)?;
                work()
            }));
            let status = if matches!(done, Ok(Ok(()))) { 0 } else { FAILED };
            // SAFETY: nothing that this process has would have to be cleaned up.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => {
            drop(work);
            wait_for(child, control)
        }
    }
}

/// Waits for the end of a child; ends this process, and with it the child, if the other side of the socket is gone.
fn wait_for(child: Pid, control: &UnixStream) -> io::Result<libc::c_int> {
    // Kernels before 5.3 have none: a child may then live on until it has used its time.
    if let Ok(ended) = PidFd::open(child.as_raw().cast_unsigned()) {
        let mut both =
            [PollFd::new(control.as_fd(), PollFlags::empty()), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
        while matches!(poll(&mut both, PollTimeout::NONE), Err(nix::Error::EINTR)) {}
        if both[0].any() == Some(true) {
            process::exit(FAILED);
        }
    }
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes one integer, to a variable of ours.
        if unsafe { libc::waitpid(child.as_raw(), &raw mut status, 0) } >= 0 {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Examines a file, and sends what was found.
fn answer(stream: &UnixStream, file: &File, work: Prepared) -> io::Result<()> {
    let end = Instant::now() + TIME_LIMIT;
    let folders = FoldersOfOther { stream, end, known: RefCell::default() };
    let answer = work(file, &folders).ok_or_else(damaged)?;
    send_raw(stream, (Kind::Answer, &answer), &[], end)
}

/// Folders that the other process reads, each once.
struct FoldersOfOther<'stream> {
    stream: &'stream UnixStream,
    end: Instant,
    known: RefCell<HashMap<usize, Vec<String>>>,
}

impl FoldersOfOther<'_> {
    fn ask(&self, level: usize) -> io::Result<Vec<String>> {
        send_until(self.stream, (Kind::NamesWanted, &level), &[], self.end)?;
        match receive_until(self.stream, self.end)? {
            message @ Message { kind: Kind::Names, .. } => message.parsed(),
            _ => Err(damaged()),
        }
    }
}

impl Folders for FoldersOfOther<'_> {
    fn names(&self, level: usize) -> Vec<String> {
        if level >= LEVELS {
            return Vec::new();
        }
        // Without its answer the other process does not wait for one either.
        let asked = || self.ask(level).unwrap_or_default();
        self.known.borrow_mut().entry(level).or_insert_with(asked).clone()
    }
}
