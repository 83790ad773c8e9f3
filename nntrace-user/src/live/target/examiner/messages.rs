//! Messages between this program and the processes that parse files for it: a head of eight bytes, then JSON.

use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::{
    cmsg_space,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recv, recvmsg, send, sendmsg},
};
use serde::{Serialize, de::DeserializeOwned};

/// Length of a message at most, bytes.
const MOST_BYTES: u32 = 16 << 20;
/// Bytes of a message's head: its kind and its length, four bytes each.
const HEAD: usize = 8;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// The server has given up its rights.
    Ready = 1,
    /// The server could not give up its rights, for this reason.
    Refused = 2,
    /// An examination by its name, with the file and the socket for the answer.
    Question = 3,
    /// Findings.
    Answer = 4,
    /// A level of folders whose names are wanted.
    NamesWanted = 5,
    /// Names in a folder.
    Names = 6,
    /// Status with which the process ended that had the question.
    Ended = 7,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Ready,
        Self::Refused,
        Self::Question,
        Self::Answer,
        Self::NamesWanted,
        Self::Names,
        Self::Ended,
    ];
}

/// Message that was received.
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) content: Vec<u8>,
    /// Descriptors that came with it.
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Message {
    /// Parses its content.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn parsed<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.content).map_err(|_| damaged())
    }
}

/// Returns the error of a message that is not understood.
pub(super) fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a message is damaged")
}

/// Sends a message until a moment at most, with these descriptors.
///
/// # Errors
/// When the other side is gone, or time is over ([`ErrorKind::WouldBlock`]).
pub(super) fn send_until(
    stream: &UnixStream,
    (kind, content): (Kind, &impl Serialize),
    descriptors: &[BorrowedFd<'_>],
    end: Instant,
) -> io::Result<()> {
    send_raw(stream, (kind, &serde_json::to_vec(content)?), descriptors, end)
}

/// Sends a message whose content is JSON already.
///
/// # Errors
/// As of [`send_until`].
pub(super) fn send_raw(
    stream: &UnixStream,
    (kind, content): (Kind, &[u8]),
    descriptors: &[BorrowedFd<'_>],
    end: Instant,
) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|length| *length <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a message is too long"))?;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(kind as u32).to_ne_bytes());
    head[4..].copy_from_slice(&length.to_ne_bytes());
    let descriptors: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let control = (!descriptors.is_empty()).then_some(ControlMessage::ScmRights(&descriptors));
    let sent = again(stream, end, || {
        let parts = [IoSlice::new(&head)];
        sendmsg::<()>(stream.as_raw_fd(), &parts, control.as_slice(), MsgFlags::MSG_NOSIGNAL, None)
    })?;
    for mut part in [&head[sent..], content] {
        while !part.is_empty() {
            let sent = again(stream, end, || send(stream.as_raw_fd(), part, MsgFlags::MSG_NOSIGNAL))?;
            part = &part[sent..];
        }
    }
    Ok(())
}

/// Makes a call that sends until it is not interrupted by a signal, or time is over.
fn again(stream: &UnixStream, end: Instant, call: impl Fn() -> nix::Result<usize>) -> io::Result<usize> {
    loop {
        // A timeout of 0 would be none.
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
        stream.set_write_timeout(Some(left))?;
        match call() {
            Err(nix::Error::EINTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Receives a message without descriptors, until a moment at most.
///
/// # Errors
/// When the other side is gone ([`ErrorKind::UnexpectedEof`]), time is over ([`ErrorKind::WouldBlock`]), or the message is
/// damaged.
pub(super) fn receive_until(stream: &UnixStream, end: Instant) -> io::Result<Message> {
    let mut until = Until { stream, end };
    let mut head = [0; HEAD];
    until.read_exact(&mut head)?;
    rest(head, &mut until)
}

/// Receives a message and the descriptors that came with it. `None` if the other side is gone.
///
/// # Errors
/// When the message is damaged, or cut short.
pub(super) fn receive_with_descriptors(stream: &UnixStream) -> io::Result<Option<Message>> {
    let mut head = [0; HEAD];
    let mut room = cmsg_space!([RawFd; 2]);
    let mut parts = [IoSliceMut::new(&mut head)];
    let received = loop {
        match recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(nix::Error::EINTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the kernel has just made them for this process, and nothing else owns them.
            descriptors.extend(received.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let length = received.bytes;
    if length == 0 {
        return Ok(None);
    }
    (&mut &*stream).read_exact(&mut head[length..])?;
    Ok(Some(Message { descriptors, ..rest(head, &mut &*stream)? }))
}

/// Reads the rest of a message whose head is known. Memory grows with what comes, not with what is announced.
fn rest(head: [u8; HEAD], stream: &mut impl Read) -> io::Result<Message> {
    let number = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (kind, length) = (number(0), number(4));
    let kind = Kind::ALL.into_iter().find(|known| *known as u32 == kind).ok_or_else(damaged)?;
    if length > MOST_BYTES {
        return Err(damaged());
    }
    let mut content = Vec::new();
    stream.take(length.into()).read_to_end(&mut content)?;
    if content.len() < length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Message { kind, content, descriptors: Vec::new() })
}

/// Socket that is read until a moment; what has come by then is read after it, too, as this process may have been stopped.
struct Until<'stream> {
    stream: &'stream UnixStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(recv(self.stream.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)?);
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}
