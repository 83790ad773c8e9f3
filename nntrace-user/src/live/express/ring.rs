//! Reader of one lane: memory that a traced program writes, and may write anything to.
//!
//! Before it is mapped it has to be a memfd on tmpfs, sealed against a change of its size and of a size within bounds:
//! otherwise reading could end us by SIGBUS. Every word is loaded once, atomically, and then checked.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::OpenOptionsExt as _,
    },
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};
use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    libc,
    sys::statfs::{TMPFS_MAGIC, fstatfs},
};
use nntrace_common::{
    express::{self, HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, MAX_SITES, MAX_TEXT_BYTES, UNIT, offsets},
    section_begin::ParsedBegin,
};
use thiserror::Error;

/// Room for the text of a record, in whole words.
const TEXT_WORDS: usize = MAX_TEXT_BYTES.div_ceil(8);

/// Reason why a lane is not read.
#[derive(Debug, Error)]
pub(in crate::live) enum LaneError {
    /// The file cannot be opened, or it is not the one that was offered.
    #[error("its memory cannot be opened: {0}")]
    Io(#[from] io::Error),
    /// The file is of another kind or form.
    #[error("its memory is not a lane: {0}")]
    NotALane(&'static str),
    /// Another collector has accepted it.
    #[error("another profiler reads it")]
    Taken,
}

/// Place in the program with a literal name.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Begin of its sections.
    pub(super) begin: ParsedBegin,
    /// Payload of their begins.
    pub(super) payload: Box<[u8]>,
}

/// Lane that we read.
pub(super) struct Ring {
    map: MmapRaw,
    capacity: usize,
    head: u64,
    /// Head at the last [`Ring::look`].
    seen: u64,
    tail: u64,
    lease: u64,
    sites: Vec<Option<Site>>,
    /// Next record, once it was looked at.
    next: Option<Head>,
    /// Whether a record was met that no version of the format writes: nothing behind it can be read.
    is_broken: bool,
    text: [u64; TEXT_WORDS],
}

impl Ring {
    /// Opens and accepts the lane that a thread of a process offers by this descriptor and key, at `now` (ns).
    ///
    /// # Errors
    /// When the descriptor is gone, or is not a lane in the form that was agreed on.
    pub(super) fn accept(pid: u32, descriptor: i64, key: u64, now: u64) -> Result<Self, LaneError> {
        let mut ring = Self::map(&open(pid, descriptor)?, key)?;
        let lease = now + express::LEASE_NS;
        // Another collector that the program cannot distinguish from us may have been faster.
        ring.word(offsets::LEASE)
            .compare_exchange(0, lease, Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| LaneError::Taken)?;
        ring.lease = lease;
        Ok(ring)
    }

    /// Maps a file that has the form of a lane.
    ///
    /// # Errors
    /// When it has not.
    pub(super) fn map(file: &File, key: u64) -> Result<Self, LaneError> {
        let seals =
            fcntl(file.as_fd(), FcntlArg::F_GET_SEALS).map_err(|_| LaneError::NotALane("no memfd"))?;
        let seals = SealFlag::from_bits_retain(seals);
        if !seals.contains(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW) {
            return Err(LaneError::NotALane("not sealed against a change of its size"));
        }
        // Memory of huge pages may be missing when it is touched.
        if fstatfs(file).map_err(io::Error::from)?.filesystem_type() != TMPFS_MAGIC {
            return Err(LaneError::NotALane("not on tmpfs"));
        }
        let length = file.metadata()?.len();
        let capacity = length.saturating_sub(HEADER_BYTES as u64);
        if !express::is_ring_size(capacity) || length != capacity + HEADER_BYTES as u64 {
            return Err(LaneError::NotALane("of a size that no ring has"));
        }
        let map = MmapOptions::new().len(length as usize).populate().map_raw(file)?;
        let ring = Self {
            map,
            capacity: capacity as usize,
            head: 0,
            seen: 0,
            tail: 0,
            lease: 0,
            sites: Vec::new(),
            next: None,
            is_broken: false,
            text: [0; TEXT_WORDS],
        };
        let has = |offset, expected| ring.word(offset).load(Ordering::Relaxed) == expected;
        if !has(offsets::MAGIC, MAGIC) || !has(offsets::RING_BYTES, capacity) {
            return Err(LaneError::NotALane("of another version of nntrace.h or nntrace-common"));
        }
        if !has(offsets::KEY, key) {
            return Err(LaneError::NotALane("another one than was offered"));
        }
        Ok(ring)
    }

    /// Bytes that are mapped.
    pub(super) fn mapped_bytes(&self) -> usize {
        self.map.len()
    }

    /// Whether it is damaged.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Renews the promise to read it; `false` when the last one has run out, which is final.
    pub(super) fn renew(&mut self, now: u64) -> bool {
        if now >= self.lease {
            return false;
        }
        if self.lease - now < express::LEASE_NS / 4 * 3 {
            self.lease = now + express::LEASE_NS;
            self.word(offsets::LEASE).store(self.lease, Ordering::Release);
        }
        true
    }

    /// Takes the promise back.
    pub(super) fn release(&mut self) {
        self.lease = 0;
        self.word(offsets::LEASE).store(0, Ordering::Release);
    }

    /// Whether nothing more will come: everything is read, and the thread has closed it.
    pub(super) fn is_over(&self) -> bool {
        // Read before the head, it would miss what was written in between.
        let head = self.word(offsets::HEAD);
        self.word(offsets::CLOSED).load(Ordering::Acquire) != 0 && head.load(Ordering::Acquire) == self.tail
    }

    /// Makes visible what was written so far.
    pub(super) fn refresh(&mut self) {
        if !self.is_broken {
            let head = self.word(offsets::HEAD).load(Ordering::Acquire);
            let written = head.wrapping_sub(self.tail);
            if written > self.capacity as u64 || !written.is_multiple_of(UNIT as u64) {
                self.is_broken = true;
            } else {
                self.head = head;
            }
        }
    }

    /// Makes visible what was written so far, which is seen from then on; returns the bytes that wait.
    pub(super) fn look(&mut self) -> u64 {
        self.refresh();
        self.seen = self.head;
        if self.is_broken { 0 } else { self.head - self.tail }
    }

    /// Whether the next record was there at the last [`Ring::look`].
    #[inline]
    pub(super) fn is_seen(&self) -> bool {
        self.tail < self.seen
    }

    /// Whether nothing is visible that was not read.
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail || self.is_broken
    }

    /// Returns the next mark without taking it; `define` parses the texts of sites before it.
    #[inline]
    pub(super) fn peek(&mut self, mut define: impl FnMut(&[u8]) -> Site) -> Option<Head> {
        loop {
            if let Some(head) = self.next {
                return Some(head);
            }
            if self.head == self.tail || self.is_broken {
                return None;
            }
            let at = self.at();
            let Some(head) = Head::read(self.words(at), at, self.capacity, self.head - self.tail) else {
                self.is_broken = true;
                return None;
            };
            match head.kind {
                Kind::Skip => self.tail += head.length as u64,
                Kind::Define => {
                    let site = define(self.text(&head));
                    let number = head.site as usize;
                    if self.sites.len() <= number {
                        self.sites.resize(number + 1, None);
                    }
                    self.sites[number] = Some(site);
                    self.tail += head.length as u64;
                }
                Kind::Site if self.site(&head).is_none() => self.is_broken = true,
                Kind::End | Kind::Site | Kind::Text => self.next = Some(head),
            }
        }
    }

    /// Passes over the mark that [`Ring::peek`] has returned.
    #[inline]
    pub(super) fn advance(&mut self) {
        if let Some(head) = self.next.take() {
            self.tail += head.length as u64;
        }
    }

    /// Frees the room of the marks that were passed.
    pub(super) fn publish(&self) {
        self.word(offsets::TAIL).store(self.tail, Ordering::Release);
    }

    /// Returns the site of a begin.
    #[inline]
    pub(super) fn site(&self, head: &Head) -> Option<&Site> {
        self.sites.get(head.site as usize)?.as_ref()
    }

    /// Returns the names of all sites.
    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        self.sites.iter().flatten().map(|site| site.begin.name)
    }

    /// Copies the text of a record, and returns it.
    pub(super) fn text(&mut self, head: &Head) -> &[u8] {
        let at = HEADER_BYTES + self.at() + UNIT;
        let words = head.text.div_ceil(8).min(TEXT_WORDS);
        for number in 0..words {
            self.text[number] = self.word(at + 8 * number).load(Ordering::Relaxed);
        }
        &zerocopy::IntoBytes::as_bytes(&self.text)[..head.text.min(MAX_TEXT_BYTES)]
    }

    /// Offset of the next record in the ring.
    #[inline]
    fn at(&self) -> usize {
        self.tail as usize & (self.capacity - 1)
    }

    #[inline]
    fn words(&self, at: usize) -> [u64; 2] {
        [0, 8].map(|word| self.word(HEADER_BYTES + at + word).load(Ordering::Relaxed))
    }

    /// Returns the word at an offset, which is a multiple of eight below the size.
    #[inline]
    #[expect(clippy::cast_ptr_alignment, reason = "a multiple of eight behind the begin of a page")]
    fn word(&self, offset: usize) -> &AtomicU64 {
        let offset = (offset & !7).min(self.map.len() - 8);
        // SAFETY: within the mapping, which begins at a page, lives as long as `self`, and does not change its size, as it is
        // sealed. The other side is a process, so the word is only ever accessed atomically.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset).cast::<AtomicU64>()).as_ref() }
    }
}

const _: () = assert!(MAX_SITES as usize * size_of::<Option<Site>>() <= 64 * 1024);

/// Opens the memory that a thread of a process offers, if it is a memfd of that name.
fn open(pid: u32, descriptor: i64) -> Result<File, LaneError> {
    let path = format!("/proc/{pid}/fd/{descriptor}");
    // By this descriptor the file can only be identified: opening a device or a pipe may have effects.
    let offered = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let own_path = format!("/proc/self/fd/{}", offered.as_raw_fd());
    let name = fs::read_link(&own_path)?;
    if name.as_os_str() != format!("/memfd:{LANE_NAME} (deleted)").as_str() {
        return Err(LaneError::NotALane("of another name"));
    }
    Ok(OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(own_path)?)
}
