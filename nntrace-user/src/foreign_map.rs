//! Memory of others, mapped: a file may be cut short while it is read, and a lane may lose its memory.
//!
//! Reading a page that is gone raises `SIGBUS`, which would end this process. The handler here puts an empty page in its
//! place, and the mapping knows that it is damaged.

use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    ptr, slice,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
};

use memmap2::{MmapOptions, MmapRaw};
use nix::{
    libc,
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
};

/// Bytes of a file's block, as `stat` counts them.
const BLOCK: u64 = 512;
/// Bytes of a file to one byte on the disk at most, where the file system compresses it.
const MOST_COMPRESSED: u64 = 16;
/// Bytes of a file that are mapped however few of them are on the disk.
const FREE_BYTES: u64 = 16 << 20;

/// Bytes of a page; set before the handler is.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// Last one of the list of places, which only grows: places are used again, never freed.
static LAST: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
/// Function that is called before a `SIGBUS` kills this process: a `fn()`, or null.
static BEFORE_DEATH: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Addresses of one mapping, as the handler finds them.
struct Place {
    is_used: AtomicBool,
    start: AtomicUsize,
    /// End, not included; 0 while nothing is mapped.
    end: AtomicUsize,
    is_writable: AtomicBool,
    is_damaged: AtomicBool,
    before: *const Self,
}

impl Place {
    /// Takes an unused place for a mapping.
    fn take(map: &MmapRaw, is_writable: bool) -> &'static Self {
        let is_ours = |place: &&Self| !place.is_used.swap(true, Ordering::AcqRel);
        let place = Self::all().find(is_ours).unwrap_or_else(Self::add);
        place.is_damaged.store(false, Ordering::Relaxed);
        place.is_writable.store(is_writable, Ordering::Relaxed);
        place.start.store(map.as_ptr().addr(), Ordering::Relaxed);
        place.end.store(map.as_ptr().addr() + map.len(), Ordering::Release);
        place
    }

    /// Adds one to the list, in use already.
    fn add() -> &'static Self {
        let place = Box::leak(Box::new(Self {
            is_used: AtomicBool::new(true),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_writable: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            before: ptr::null(),
        }));
        let mut last = LAST.load(Ordering::Acquire);
        loop {
            place.before = last;
            let new = ptr::from_mut(place);
            match LAST.compare_exchange(last, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return place,
                Err(other) => last = other,
            }
        }
    }

    /// Goes through the list. Async-signal-safe.
    fn all() -> impl Iterator<Item = &'static Self> {
        // SAFETY: the pointers are null or of places that are leaked; `before` does not change once a place is in the
        // list, and all else in it is atomic.
        let at = |place: *const Self| unsafe { place.as_ref() };
        std::iter::successors(at(LAST.load(Ordering::Acquire)), move |place| at(place.before))
    }
}

/// Mapping of a file that others may change.
pub(crate) struct ForeignMap {
    /// Given up before the memory is.
    registration: Registration,
    map: MmapRaw,
}

struct Registration(&'static Place);

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Release);
        self.0.is_used.store(false, Ordering::Release);
    }
}

impl ForeignMap {
    /// Maps a whole file for reading; of one that consists of holes, only what lies before the most of them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        // Reading a hole takes as much memory as reading data. File systems that compress have few blocks too, and some
        // do not count them.
        let most = match metadata.blocks() {
            0 => u64::MAX,
            blocks => FREE_BYTES.saturating_add(blocks.saturating_mul(BLOCK * MOST_COMPRESSED)),
        };
        let length = usize::try_from(metadata.len().min(most)).unwrap_or(usize::MAX);
        Self::register(MmapOptions::new().len(length).map_raw_read_only(file)?, false)
    }

    /// Maps the first bytes of a file for reading and writing, and loads the pages that exist.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn shared(file: &File, length: usize) -> io::Result<Self> {
        Self::register(MmapOptions::new().len(length).populate().map_raw(file)?, true)
    }

    fn register(map: MmapRaw, is_writable: bool) -> io::Result<Self> {
        catch_bus_errors()?;
        Ok(Self { registration: Registration(Place::take(&map, is_writable)), map })
    }

    /// Whether a page was missing when it was read: bytes from there on may be 0 that were not.
    pub(crate) fn is_damaged(&self) -> bool {
        self.registration.0.is_damaged.load(Ordering::Acquire)
    }

    /// Returns the address of the mapping, which begins at a page.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr()
    }

    /// Returns the number of bytes that are mapped.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.map.len()
    }

    /// Hands the bytes over, which others may change meanwhile: each is checked for what it is used for.
    pub(crate) fn with_bytes<T>(&self, work: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the mapping lives as long as the borrow, and a page that goes is replaced by an empty one. Nobody in this
        // process writes it. Who overwrites the file changes the bytes that are read: the readers of these files take
        // them for data of anybody, and check every number where they use it.
        work(unsafe { slice::from_raw_parts(self.map.as_ptr(), self.map.len()) })
    }
}

/// Has a function called when a `SIGBUS` is going to kill this process. It makes only async-signal-safe calls.
///
/// # Errors
/// When the handler cannot be set.
pub(crate) fn before_death(work: fn()) -> io::Result<()> {
    BEFORE_DEATH.store(work as *mut (), Ordering::Release);
    catch_bus_errors()
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: it only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Sets the handler, once.
fn catch_bus_errors() -> io::Result<()> {
    static DONE: OnceLock<Result<(), nix::Error>> = OnceLock::new();
    let set = || {
        PAGE.store(page_bytes(), Ordering::Release);
        // On a stack of its own, as the main one may have run over.
        let flags = SaFlags::SA_ONSTACK | SaFlags::SA_SIGINFO;
        let action = SigAction::new(SigHandler::SigAction(on_bus_error), flags, SigSet::empty());
        // SAFETY: the handler makes only calls that are async-signal-safe.
        unsafe { sigaction(Signal::SIGBUS, &action) }.map(drop)
    };
    Ok((*DONE.get_or_init(set))?)
}

/// Puts an empty page where one is missing, or lets the signal kill.
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over the information on this signal; the address is that of a bus error.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code == libc::BUS_ADRERR && replace_page(address) {
        return;
    }
    let work = BEFORE_DEATH.load(Ordering::Acquire);
    if !work.is_null() {
        // SAFETY: only `before_death` sets it, from a function of this type.
        let work: fn() = unsafe { std::mem::transmute(work) };
        work();
    }
    // SAFETY: async-signal-safe. The signal is delivered when this returns, and finds the default action.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Puts an empty page at an address of a mapping; `false` if the address is in no mapping, or memory is out.
fn replace_page(address: usize) -> bool {
    let is_in = |place: &&Place| {
        let end = place.end.load(Ordering::Acquire);
        (place.start.load(Ordering::Relaxed)..end).contains(&address)
    };
    let Some(place) = Place::all().find(is_in) else { return false };
    let page = PAGE.load(Ordering::Acquire);
    let writing = if place.is_writable.load(Ordering::Relaxed) { libc::PROT_WRITE } else { 0 };
    let start = ptr::with_exposed_provenance_mut(address & !(page - 1));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: a system call, which is async-signal-safe. The page belongs to a mapping of ours that the interrupted code
    // reads, so it is not unmapped meanwhile; what was there cannot be read, so no value that was seen changes.
    let put = unsafe { libc::mmap(start, page, libc::PROT_READ | writing, flags, -1, 0) };
    if put == libc::MAP_FAILED {
        return false;
    }
    place.is_damaged.store(true, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write as _};

    use super::*;

    fn file_of(bytes: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file
    }

    #[test]
    fn a_file_that_is_cut_reads_as_zeros_and_is_damaged() {
        let (cut, whole) = (file_of(10_000), file_of(10_000));
        let (map, other) = (ForeignMap::of(&cut).unwrap(), ForeignMap::of(&whole).unwrap());
        let sum =
            |map: &ForeignMap| map.with_bytes(|bytes| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>());
        assert_eq!((sum(&map), map.is_damaged()), (70_000, false));
        cut.set_len(0).unwrap();
        assert_eq!((sum(&map), map.is_damaged()), (0, true));
        assert_eq!((sum(&other), other.is_damaged()), (70_000, false));
        drop(map);
        // The place is used again, by a mapping that is whole.
        let again = ForeignMap::of(&whole).unwrap();
        assert_eq!((sum(&again), again.is_damaged()), (70_000, false));
    }

    #[test]
    fn memory_that_is_taken_away_can_be_written() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let file = OpenOptions::new().read(true).write(true).open(path.path()).unwrap();
        file.set_len(8192).unwrap();
        let map = ForeignMap::shared(&file, 8192).unwrap();
        file.set_len(0).unwrap();
        // SAFETY: within the mapping, and nothing else borrows from that.
        unsafe { map.as_ptr().cast_mut().add(4096).write_volatile(1) };
        assert!(map.is_damaged());
        assert_eq!(map.with_bytes(|bytes| bytes[4096]), 1);
    }
}
