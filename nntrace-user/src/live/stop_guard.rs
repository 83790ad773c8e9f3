//! Process of our own that continues a command which we have stopped and do not continue, because our output blocks or
//! because we are stopped ourselves.
//!
//! The kernel programs put a record into a ring of its own for each stop that they cause, so it sleeps until there is one.

use std::{
    fs::{self, File},
    io::{self, IoSlice, IoSliceMut},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use memmap2::{MmapOptions, MmapRaw};
use nix::{
    cmsg_space, libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        memfd::{MFdFlags, memfd_create},
        signal::{SigSet, Signal, kill},
        socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
    },
    unistd::{ForkResult, Pid, fork, getpid},
};

use super::clock;
use crate::{caller, foreign_map::page_bytes};

/// Time after a stop until which we have to have begun to answer it.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time after a stop until which we have to have begun to answer it where we did not answer the last one.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);
/// Time from a stop's record to the stop at most, ns.
const LONGEST_WAY: u64 = 2_000_000_000;
/// Time after a stop until which we have to have answered it, ns: an engine of a gigabyte takes a second to search.
const LONGEST_ANSWER: u64 = 5_000_000_000;
/// Signals that end us are no reason to leave the command stopped.
const IGNORED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Our side of it. It ends when this is dropped.
pub struct StopGuard {
    socket: UnixStream,
    shared: Arc<Shared>,
}

/// Time, ns.
#[derive(Clone, Copy)]
enum Word {
    /// Time from which on we are searching what a stopped command has mapped; 0 while we are not.
    AnsweringSince,
    /// Time at which we last began such a search.
    LastAnswer,
    /// Time at which the guard last continued the command.
    ReleasedAt,
}

/// Number of the words.
const WORDS: usize = 3;

/// Memory that both sides have.
struct Shared(MmapRaw);

impl Shared {
    fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("nntrace-stops", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(WORDS as u64 * 8)?;
        Ok(Self(MmapOptions::new().len(WORDS * 8).map_raw(&file)?))
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: a mapping begins at a page, and this one has as many words; both sides use them as atomic ones only,
        // and nobody else knows the file.
        let words: &[AtomicU64] = unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), WORDS) };
        &words[word as usize]
    }
}

impl StopGuard {
    /// Starts the process. To be called while this process has one thread.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let shared = Arc::new(Shared::new()?);
        let parent = getpid();
        // SAFETY: there is no other thread, whose locks the child would find taken.
        match unsafe { fork() }? {
            ForkResult::Parent { .. } => Ok(Self { socket: ours, shared }),
            ForkResult::Child => {
                drop(ours);
                let ended = catch_unwind(AssertUnwindSafe(|| guard(&theirs, &shared, parent)));
                // SAFETY: it ends this process, without what its parent does at its own end.
                unsafe { libc::_exit(i32::from(!matches!(ended, Ok(Ok(()))))) }
            }
        }
    }

    /// Has it watch a process, whose stops are records of this ring.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn watch(&self, pid: u32, stops: BorrowedFd<'_>) -> io::Result<()> {
        let number = pid.to_ne_bytes();
        let descriptors = [stops.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&descriptors)];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_NOSIGNAL);
        sendmsg::<()>(socket, &[IoSlice::new(&number)], &message, flags, None)?;
        Ok(())
    }

    /// Notes that we are about to continue the command, until the result is dropped.
    pub(super) fn answer(&self) -> Answer {
        let now = clock::now();
        self.shared.word(Word::LastAnswer).store(now, Ordering::Release);
        self.shared.word(Word::AnsweringSince).store(now, Ordering::Release);
        Answer(Arc::clone(&self.shared))
    }

    /// Whether it has continued the command since a stop at this time (ns).
    pub(super) fn has_released_since(&self, stopped_at: u64) -> bool {
        self.shared.word(Word::ReleasedAt).load(Ordering::Acquire) > stopped_at
    }
}

/// Search of what a stopped command has mapped.
pub(super) struct Answer(Arc<Shared>);

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.word(Word::AnsweringSince).store(0, Ordering::Release);
    }
}

/// Ring of records that are only counted: all of them are taken at once.
struct Stops {
    ring: OwnedFd,
    consumer: MmapRaw,
    producer: MmapRaw,
}

impl Stops {
    /// Maps the two positions of a ring (`kernel/bpf/ringbuf.c`): a page each. The first is ours to write.
    fn map(ring: OwnedFd) -> io::Result<Self> {
        let consumer = MmapOptions::new().len(8).map_raw(&ring)?;
        let producer = MmapOptions::new().len(8).offset(page_bytes() as u64).map_raw_read_only(&ring)?;
        Ok(Self { ring, consumer, producer })
    }

    fn take_all(&self) {
        let position = |map: &MmapRaw| map.as_ptr().cast::<()>().cast::<AtomicU64>();
        // SAFETY: both mappings begin at a page and live as long as this; the kernel uses the words as atomic ones too.
        let (consumer, producer) = unsafe { (&*position(&self.consumer), &*position(&self.producer)) };
        consumer.store(producer.load(Ordering::Acquire), Ordering::Release);
    }
}

/// The process: waits for stops, until the other side of the socket is gone.
fn guard(socket: &UnixStream, shared: &Shared, parent: Pid) -> io::Result<()> {
    IGNORED.into_iter().collect::<SigSet>().thread_block()?;
    caller::keep_right_to_signal()?;
    close_others(socket)?;
    let Some((pid, ring)) = receive(socket)? else { return Ok(()) };
    let stops = Stops::map(ring)?;
    let pid = Pid::from_raw(pid.cast_signed());
    loop {
        let wait_for = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let mut waiting = [wait_for(socket.as_fd()), wait_for(stops.ring.as_fd())];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_come = |at: usize| waiting[at].revents().is_some_and(|events| !events.is_empty());
        if has_come(1) {
            stops.take_all();
            see_it_continued(shared, pid, parent);
        }
        if has_come(0) {
            // Nothing is sent any more: the profiler has ended.
            return Ok(());
        }
    }
}

/// Waits until a command that was stopped runs again, and continues it if nobody else is going to.
fn see_it_continued(shared: &Shared, pid: Pid, parent: Pid) {
    let stopped_at = clock::now();
    // Who has not answered for so long that the command was continued is not waited for again until he does.
    let is_absent = || {
        let last_answer = shared.word(Word::LastAnswer).load(Ordering::Acquire);
        shared.word(Word::ReleasedAt).load(Ordering::Acquire) > last_answer
    };
    loop {
        thread::sleep(if is_absent() { LEAST_PATIENCE } else { PATIENCE });
        let (now, last_answer) = (clock::now(), shared.word(Word::LastAnswer).load(Ordering::Acquire));
        match state(pid) {
            Some(b'T') => {}
            // The signal may be on its way still.
            Some(_) if last_answer < stopped_at && now - stopped_at < LONGEST_WAY => continue,
            _ => return,
        }
        let since = shared.word(Word::AnsweringSince).load(Ordering::Acquire);
        let is_answered = since > 0 && now.saturating_sub(stopped_at.max(since)) < LONGEST_ANSWER;
        if !is_answered || matches!(state(parent), Some(b'T' | b't') | None) {
            // First, so that whoever answers later knows that what was mapped is in use already.
            shared.word(Word::ReleasedAt).store(clock::now(), Ordering::Release);
            // It may have been killed meanwhile.
            let _ = kill(pid, Signal::SIGCONT);
            return;
        }
    }
}

/// Returns the letter of a process's state; `None` if it has ended.
fn state(pid: Pid) -> Option<u8> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(name_end + 2).copied()
}

/// Closes what was inherited: the other ends of pipes would wait for this process.
fn close_others(socket: &UnixStream) -> io::Result<()> {
    let names = fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers: Vec<i32> = names.filter_map(|name| name.parse().ok()).collect();
    for number in numbers.into_iter().filter(|&number| number != socket.as_raw_fd()) {
        // SAFETY: nothing that this process goes on to use has it; one that is closed already is an error without effect.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Waits for a process and its ring; `None` if the other side goes before it has any.
fn receive(socket: &UnixStream) -> io::Result<Option<(u32, OwnedFd)>> {
    let mut number = [0; 4];
    let mut space = cmsg_space!([i32; 1]);
    let mut parts = [IoSliceMut::new(&mut number)];
    let received =
        recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let ring = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().map(|&descriptor| {
            // SAFETY: the kernel has made this descriptor for us, and nobody else knows it.
            unsafe { OwnedFd::from_raw_fd(descriptor) }
        }),
        _ => None,
    });
    Ok(ring.map(|ring| (u32::from_ne_bytes(number), ring)))
}
