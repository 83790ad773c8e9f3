//! The system calls of lanes. They are made by number since libc's functions for them may cancel the thread, and may be
//! replaced by others that write marks.

use core::ffi::{c_int, c_long};
use core::num::NonZero;
use core::ptr::{self, NonNull};

use crate::express::LANE_NAME;

#[cfg(target_arch = "x86_64")]
mod number {
    use core::ffi::c_long;

    pub(super) const CLOSE: c_long = 3;
    pub(super) const FSTAT: c_long = 5;
    pub(super) const MMAP: c_long = 9;
    pub(super) const MUNMAP: c_long = 11;
    pub(super) const MADVISE: c_long = 28;
    pub(super) const GETPID: c_long = 39;
    pub(super) const FCNTL: c_long = 72;
    pub(super) const PRCTL: c_long = 157;
    pub(super) const GETTID: c_long = 186;
    pub(super) const TGKILL: c_long = 234;
    pub(super) const FALLOCATE: c_long = 285;
    pub(super) const PRLIMIT64: c_long = 302;
    pub(super) const MEMFD_CREATE: c_long = 319;
}

#[cfg(target_arch = "aarch64")]
mod number {
    use core::ffi::c_long;

    pub(super) const FCNTL: c_long = 25;
    pub(super) const FALLOCATE: c_long = 47;
    pub(super) const CLOSE: c_long = 57;
    pub(super) const FSTAT: c_long = 80;
    pub(super) const TGKILL: c_long = 131;
    pub(super) const PRCTL: c_long = 167;
    pub(super) const GETPID: c_long = 172;
    pub(super) const GETTID: c_long = 178;
    pub(super) const MUNMAP: c_long = 215;
    pub(super) const MMAP: c_long = 222;
    pub(super) const MADVISE: c_long = 233;
    pub(super) const PRLIMIT64: c_long = 261;
    pub(super) const MEMFD_CREATE: c_long = 279;
}

const CLOCK_MONOTONIC: c_int = 1;
const EINVAL: c_int = 22;
const ESRCH: c_int = 3;
const F_ADD_SEALS: c_long = 1033;
const F_DUPFD_CLOEXEC: c_long = 1030;
/// Against further seals, and against a shorter and a longer file.
const F_SEALS: c_long = 1 | 2 | 4;
const MADV_DONTFORK: c_long = 10;
/// Since Linux 4.14.
const MADV_WIPEONFORK: c_long = 18;
const MAP_SHARED: c_long = 1;
/// Private, and of no file.
const MAP_OWN: c_long = 2 | 0x20;
/// Closed by an exec, and to be sealed.
const MFD: c_long = 1 | 2;
/// Never to be executed; since Linux 6.3.
const MFD_NOEXEC_SEAL: c_long = 8;
/// Readable and writable.
const PROT: c_long = 1 | 2;
const PR_GET_SECCOMP: c_long = 21;
const RLIMIT_FSIZE: c_long = 1;
/// Words of `struct stat` and more. It begins with device and inode on all architectures that have lanes.
const STATUS_WORDS: usize = 32;

/// `struct timespec` of 64-bit systems.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn clock_gettime(clock: c_int, reading: *mut Timespec) -> c_int;
    fn __errno_location() -> *mut c_int;
}

/// The thread's `errno`, which is the same again when this is dropped.
pub(super) struct SavedErrno(c_int);

impl SavedErrno {
    pub(super) fn new() -> Self {
        Self(errno())
    }
}

impl Drop for SavedErrno {
    fn drop(&mut self) {
        // SAFETY: the variable of this thread, which is there for as long as the thread.
        unsafe { *__errno_location() = self.0 }
    }
}

fn errno() -> c_int {
    // SAFETY: the variable of this thread, which is there for as long as the thread.
    unsafe { *__errno_location() }
}

/// Descriptor of a file, and none of the standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Descriptor(NonZero<c_long>);

impl Descriptor {
    /// Returns its number.
    pub(super) fn number(self) -> i64 {
        self.0.get()
    }

    /// Returns device and inode of the file that it is open on.
    pub(super) fn identity(self) -> Option<[u64; 2]> {
        let mut status = [0; STATUS_WORDS];
        // SAFETY: the kernel writes a `struct stat`, which is shorter.
        let result = unsafe { syscall(number::FSTAT, self.number(), status.as_mut_ptr()) };
        (result == 0).then_some([status[0], status[1]])
    }

    /// Closes it.
    pub(super) fn close(self) {
        close(self.number());
    }
}

fn close(file: c_long) {
    // SAFETY: the caller has found that the file is its own. The result is of no use: the descriptor is free in any case.
    unsafe { syscall(number::CLOSE, file) };
}

/// Returns the time of `CLOCK_MONOTONIC`, ns.
#[inline]
pub(super) fn now() -> u64 {
    let mut reading = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the clock is written to `reading`. No kernel is without this one.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut reading) };
    reading.seconds.cast_unsigned() * 1_000_000_000 + reading.nanoseconds.cast_unsigned()
}

/// Whether system calls of this thread may be refused, or deadly.
pub(super) fn is_confined() -> bool {
    let unused: c_long = 0;
    // SAFETY: a question that changes nothing.
    let mode = unsafe { syscall(number::PRCTL, PR_GET_SECCOMP, unused, unused, unused, unused) };
    // A kernel without seccomp does not know the question.
    mode > 0 || (mode < 0 && errno() != EINVAL)
}

/// Returns the id of this process.
pub(super) fn process_id() -> i32 {
    // SAFETY: a question that changes nothing.
    unsafe { syscall(number::GETPID) as i32 }
}

/// Returns the id of this thread.
pub(super) fn thread_id() -> i32 {
    // SAFETY: a question that changes nothing.
    unsafe { syscall(number::GETTID) as i32 }
}

/// Whether a process has no thread of this id.
pub(super) fn is_dead(process: i32, thread: i32) -> bool {
    let no_signal: c_long = 0;
    // SAFETY: without a signal it is a question that changes nothing.
    let result = unsafe { syscall(number::TGKILL, c_long::from(process), c_long::from(thread), no_signal) };
    result != 0 && errno() == ESRCH
}

/// Creates a sealed file of so many bytes, all of them allocated so that no write can fail later.
pub(super) fn lane_file(bytes: usize) -> Option<Descriptor> {
    const NAME: [u8; LANE_NAME.len() + 1] = {
        let mut name = [0; LANE_NAME.len() + 1];
        name.split_at_mut(LANE_NAME.len()).0.copy_from_slice(LANE_NAME.as_bytes());
        name
    };
    let (this_process, no_flags, from): (c_long, c_long, c_long) = (0, 0, 0);
    let mut limit = [0u64; 2];
    // SAFETY: the kernel writes two words to `limit`, and changes nothing.
    let result = unsafe {
        syscall(number::PRLIMIT64, this_process, RLIMIT_FSIZE, ptr::null::<u64>(), limit.as_mut_ptr())
    };
    // The thread would be killed for a file that is too long.
    if result != 0 || limit[0] < bytes as u64 {
        return None;
    }
    // SAFETY: the name is text of C.
    let mut file = unsafe { syscall(number::MEMFD_CREATE, NAME.as_ptr(), MFD | MFD_NOEXEC_SEAL) };
    if file < 0 && errno() == EINVAL {
        // SAFETY: as above.
        file = unsafe { syscall(number::MEMFD_CREATE, NAME.as_ptr(), MFD) };
    }
    if (0..=2).contains(&file) {
        // A program that has closed its standard streams must not read or print here.
        let first: c_long = 3;
        // SAFETY: the file is our own.
        let other = unsafe { syscall(number::FCNTL, file, F_DUPFD_CLOEXEC, first) };
        close(file);
        file = other;
    }
    if file < 0 {
        return None;
    }
    // SAFETY: the file is our own, and nobody has mapped it.
    let is_ready = unsafe {
        syscall(number::FALLOCATE, file, no_flags, from, bytes) == 0
            && syscall(number::FCNTL, file, F_ADD_SEALS, F_SEALS) == 0
    };
    if !is_ready {
        close(file);
        return None;
    }
    NonZero::new(file).map(Descriptor)
}

/// Maps a file of so many bytes, but not for forked children.
pub(super) fn map_shared(file: Descriptor, bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, MAP_SHARED, file.number(), MADV_DONTFORK)
}

/// Maps memory, in which forked children find zeros.
pub(super) fn map_wiped(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, MAP_OWN, -1, MADV_WIPEONFORK)
}

fn map(bytes: usize, kind: c_long, file: c_long, advice: c_long) -> Option<NonNull<u8>> {
    let from: c_long = 0;
    // SAFETY: where nothing is mapped yet.
    let address = unsafe { syscall(number::MMAP, ptr::null::<u8>(), bytes, PROT, kind, file, from) };
    if address == -1 {
        return None;
    }
    let start = NonNull::new(ptr::with_exposed_provenance_mut(address.cast_unsigned() as usize))?;
    // SAFETY: the mapping is new, and nobody else knows of it.
    if unsafe { syscall(number::MADVISE, address, bytes, advice) } != 0 {
        // SAFETY: the same.
        unsafe { unmap(start, bytes) };
        return None;
    }
    Some(start)
}

/// Unmaps memory.
///
/// # Safety
/// It was mapped here with so many bytes, and nothing refers to it.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { syscall(number::MUNMAP, start.as_ptr(), bytes) };
}
