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

/// Multiple of the size of all pages that a kernel may use.
const PAGES: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 64 << 10 };
const CLOCK_MONOTONIC: c_int = 1;
const EINVAL: c_int = 22;
const ESRCH: c_int = 3;
const F_ADD_SEALS: c_long = 1033;
const F_DUPFD_CLOEXEC: c_long = 1030;
/// Seals against further seals, and against a shorter and a longer file.
const F_SEALS: c_long = 1 | 2 | 4;
const MADV_DONTNEED: c_long = 4;
const MADV_DONTFORK: c_long = 10;
/// Since Linux 4.14.
const MADV_WIPEONFORK: c_long = 18;
const MAP_SHARED: c_long = 1;
/// Private, and of no file.
const MAP_OWN: c_long = 2 | 0x20;
/// Flag of a mapping that takes the place of what is mapped there.
const MAP_FIXED: c_long = 0x10;
/// Grows like a stack where something is missing below it, as far as the limit of stacks.
const MAP_GROWSDOWN: c_long = 0x100;
const MAP_NORESERVE: c_long = 0x4000;
/// Closed by an exec, and to be sealed.
const MFD: c_long = 1 | 2;
/// Never to be executed; since Linux 6.3.
const MFD_NOEXEC_SEAL: c_long = 8;
/// Readable and writable.
const PROT: c_long = 1 | 2;
const PROT_NONE: c_long = 0;
const PR_GET_SECCOMP: c_long = 21;
const PR_GET_TSC: c_long = 25;
const PR_TSC_SIGSEGV: c_int = 2;
const RLIMIT_FSIZE: c_long = 1;
const RLIMIT_STACK: c_long = 3;
const RLIMIT_NOFILE: c_long = 7;
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

/// Whether this thread would die of a reading of the counter, which the clock is as well. Where no thread can be forbidden that
/// the question is not known.
pub(super) fn is_barred() -> bool {
    let mut mode: c_int = 0;
    let unused: c_long = 0;
    // SAFETY: the kernel writes to `mode`, and changes nothing.
    let result = unsafe { syscall(number::PRCTL, PR_GET_TSC, &raw mut mode, unused, unused, unused) };
    result == 0 && mode == PR_TSC_SIGSEGV
}

/// Whether a new mapping is locked, as after `mlockall(MCL_FUTURE)`: it would count as what the program may lock. Locked memory
/// cannot be thrown away.
fn locks_memory() -> bool {
    let Some(page) = map_at(0, PAGES, PROT_NONE, MAP_OWN, -1) else { return true };
    // SAFETY: the mapping is new, nobody else knows of it, and it has no contents.
    unsafe {
        let result = syscall(number::MADVISE, page, PAGES, MADV_DONTNEED);
        unmap_at(page, PAGES);
        result != 0
    }
}

/// Whether this thread may have no lane, or no new one.
pub(super) fn goes_without() -> bool {
    is_confined() || is_barred() || locks_memory()
}

/// Returns a limit of this process.
fn limit(which: c_long) -> u64 {
    let this_process: c_long = 0;
    let mut limit = [0u64; 2];
    // SAFETY: the kernel writes two words to `limit`, and changes nothing.
    let result =
        unsafe { syscall(number::PRLIMIT64, this_process, which, ptr::null::<u64>(), limit.as_mut_ptr()) };
    if result == 0 { limit[0] } else { 0 }
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

/// Creates a sealed file of this many bytes, all of them allocated so that no write can fail later.
pub(super) fn lane_file(bytes: usize) -> Option<Descriptor> {
    const NAME: [u8; LANE_NAME.len() + 1] = {
        let mut name = [0; LANE_NAME.len() + 1];
        name.split_at_mut(LANE_NAME.len()).0.copy_from_slice(LANE_NAME.as_bytes());
        name
    };
    let (no_flags, from): (c_long, c_long) = (0, 0);
    // The thread would be killed for a file that is too long.
    if limit(RLIMIT_FSIZE) < bytes as u64 {
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
    // The program is not to run out of descriptors: it has half of them for itself.
    let is_low = limit(RLIMIT_NOFILE) / 2 > file.cast_unsigned();
    // SAFETY: the file is our own, and nobody has mapped it.
    let is_ready = is_low
        && unsafe {
            syscall(number::FALLOCATE, file, no_flags, from, bytes) == 0
                && syscall(number::FCNTL, file, F_ADD_SEALS, F_SEALS) == 0
        };
    if !is_ready {
        close(file);
        return None;
    }
    NonZero::new(file).map(Descriptor)
}

/// Returns the bytes of the mappings of a lane: the lane, and a page or more on both sides.
fn span(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGES) + 2 * PAGES
}

/// Maps a file of this size, but not for forked children. A child that goes on with a mark of its parent, as it was forked by
/// a signal handler and returns from that, writes to empty memory of its own: after the lane is a mapping that grows down
/// where the lane is missing. In front there is one without access, as memory of others there would keep it from growing.
pub(super) fn map_lane(file: Descriptor, bytes: usize) -> Option<NonNull<u8>> {
    let all = span(bytes);
    if limit(RLIMIT_STACK) < all as u64 {
        return None;
    }
    let length = all - 2 * PAGES;
    let front = map_at(0, all, PROT_NONE, MAP_OWN | MAP_NORESERVE, -1)?;
    let lane = front + PAGES;
    let is_mapped = map_at(lane + length, PAGES, PROT, MAP_OWN | MAP_FIXED | MAP_GROWSDOWN, -1).is_some()
        && map_at(lane, length, PROT, MAP_SHARED | MAP_FIXED, file.number()).is_some()
        // SAFETY: the mapping is new, and nobody else knows of it.
        && unsafe { syscall(number::MADVISE, lane, length, MADV_DONTFORK) } == 0;
    if !is_mapped {
        // SAFETY: the same.
        unsafe { unmap_at(front, all) };
        return None;
    }
    NonNull::new(ptr::with_exposed_provenance_mut(lane))
}

/// Unmaps a lane of this size.
///
/// # Safety
/// It was mapped by [`map_lane`], and nothing refers to it.
pub(super) unsafe fn unmap_lane(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { unmap_at(start.as_ptr().addr() - PAGES, span(bytes)) };
}

/// Maps memory, in which forked children find zeros.
pub(super) fn map_wiped(bytes: usize) -> Option<NonNull<u8>> {
    let address = map_at(0, bytes, PROT, MAP_OWN, -1)?;
    // SAFETY: the mapping is new, and nobody else knows of it.
    if unsafe { syscall(number::MADVISE, address, bytes, MADV_WIPEONFORK) } != 0 {
        // SAFETY: the same.
        unsafe { unmap_at(address, bytes) };
        return None;
    }
    NonNull::new(ptr::with_exposed_provenance_mut(address))
}

/// Maps a file, or memory of none: anywhere where nothing is mapped yet, or within a mapping of our own.
fn map_at(address: usize, bytes: usize, access: c_long, kind: c_long, file: c_long) -> Option<usize> {
    let from: c_long = 0;
    // SAFETY: where nobody else has mapped anything.
    let address = unsafe { syscall(number::MMAP, address, bytes, access, kind, file, from) };
    (address != -1).then_some(address.cast_unsigned() as usize)
}

/// Unmaps memory.
///
/// # Safety
/// It was mapped here with this many bytes, and nothing refers to it.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { unmap_at(start.as_ptr().addr(), bytes) };
}

/// Unmaps memory.
///
/// # Safety
/// As for [`unmap`].
unsafe fn unmap_at(start: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { syscall(number::MUNMAP, start, bytes) };
}
