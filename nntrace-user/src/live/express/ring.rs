//! Reader of one lane: memory that a traced program writes, and may write anything to.
//!
//! Before it is mapped it has to be a memfd on tmpfs, sealed against a change of its size and of a size within bounds. Its
//! pages may still be missing, where the program has given them back and the machine is out of memory: they read as 0. Every
//! word is loaded once, atomically, and then checked.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::OpenOptionsExt as _,
    },
    slice,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    libc,
    sys::statfs::{TMPFS_MAGIC, fstatfs},
};
use nntrace_common::{
    express::{
        self, ACCEPTED, HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, MAX_SITES, MAX_TEXT_BYTES, UNIT, clocks,
        offsets, sections,
    },
    prefetch,
    section_begin::ParsedBegin,
};
use thiserror::Error;
use zerocopy::IntoBytes as _;

use super::{open_calls::OpenCalls, tick_clock::Line};
use crate::{foreign_map::ForeignMap, live::clock};

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Words that are copied at once: whole lines of the cache, so that the wait for one is the wait for several.
const COPIED_WORDS: usize = 128;
const _: () = assert!(COPIED_WORDS * 8 >= express::record_bytes(MAX_TEXT_BYTES));

/// Reason why a lane is not read.
#[derive(Debug, Error)]
pub(in crate::live) enum LaneError {
    /// The file cannot be opened, or it is not the one that was offered.
    #[error("its memory cannot be opened: {0}")]
    Io(#[from] io::Error),
    /// The file is of another kind or form.
    #[error("its memory is not a lane: {0}")]
    NotALane(&'static str),
    /// Its descriptor is closed, or is one of a lane that came after it: the thread has ended, or offers another one.
    #[error("its descriptor is another one's by now")]
    Gone,
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
    map: ForeignMap,
    /// Key that it was offered under.
    pub(super) key: u64,
    /// Calls that are open, if its sections are calls of an engine's functions.
    pub(super) calls: Option<OpenCalls>,
    capacity: usize,
    head: u64,
    /// Head at the last [`Ring::look`].
    looked_at: u64,
    /// Head at the last [`Ring::look`] that was confirmed.
    seen: u64,
    tail: u64,
    lease: u64,
    /// Conversion of ticks, where the thread may write these.
    line: Option<Line>,
    /// Whether times are in ticks; not known before the first record.
    in_ticks: Option<bool>,
    /// The conversion, where they are.
    conversion: Option<Line>,
    sites: Vec<Option<Site>>,
    /// Time of the last [`Ring::refresh`], ns: nothing that is visible was written later.
    read_at: u64,
    /// Place of the last record that says otherwise, and the time (ns) that it has instead.
    far: Option<(u64, u64)>,
    /// Whether a record was met that no version of the format writes: nothing after it can be read.
    is_broken: bool,
    /// Copy of the ring from `copied_from` on, up to `copied_to`.
    copy: Box<[u64; COPIED_WORDS]>,
    copied_from: u64,
    copied_to: u64,
}

impl Ring {
    /// Opens and accepts the lane that a thread of a process offers by this descriptor and key, at `now` (ns), with a
    /// conversion of ticks where there is one. The thread uses it from the [promise](Ring::promise) on.
    ///
    /// # Errors
    /// When the descriptor is gone, or is not a lane in the form that was agreed on.
    pub(super) fn accept(
        pid: u32,
        descriptor: i64,
        key: u64,
        now: u64,
        line: Option<Line>,
    ) -> Result<Self, LaneError> {
        let lane = open_lane(&format!("/proc/{pid}/fd/{descriptor}"), true).map_err(|error| match error {
            LaneError::Io(error) if error.kind() == io::ErrorKind::NotFound => LaneError::Gone,
            error => error,
        })?;
        let mut ring = Self::map(&lane, key)?;
        // Another collector that the program cannot distinguish from us may have been faster.
        ring.word(offsets::LEASE)
            .compare_exchange(0, ACCEPTED, Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| LaneError::Taken)?;
        ring.lease = now + express::LEASE_NS;
        ring.line = line.filter(|_| ring.word(offsets::CLOCK).load(Ordering::Relaxed) != clocks::NS);
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
        let map = ForeignMap::shared(file, length as usize)?;
        let mut ring = Self {
            map,
            key,
            calls: None,
            capacity: capacity as usize,
            head: 0,
            looked_at: 0,
            seen: 0,
            tail: 0,
            lease: 0,
            line: None,
            in_ticks: None,
            conversion: None,
            sites: Vec::new(),
            read_at: 0,
            far: None,
            is_broken: false,
            copy: Box::new([0; COPIED_WORDS]),
            copied_from: 0,
            copied_to: 0,
        };
        let has = |offset, expected| ring.word(offset).load(Ordering::Relaxed) == expected;
        // A lane that is being made is empty.
        if has(offsets::MAGIC, 0) || (has(offsets::MAGIC, MAGIC) && !has(offsets::KEY, key)) {
            return Err(LaneError::Gone);
        }
        if !has(offsets::MAGIC, MAGIC) || !has(offsets::RING_BYTES, capacity) {
            return Err(LaneError::NotALane("of another version of nntrace.h or nntrace-common"));
        }
        ring.calls = has(offsets::SECTIONS, sections::CALLS).then(OpenCalls::default);
        Ok(ring)
    }

    /// Bytes that are mapped.
    pub(super) fn mapped_bytes(&self) -> usize {
        self.map.length()
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
            self.promise();
        }
        true
    }

    /// Writes the lease, by both clocks: the one that the thread uses has to be there before it chooses.
    pub(super) fn promise(&self) {
        let in_ticks = self.line.as_ref().map_or(0, |line| line.ticks(self.lease));
        self.word(offsets::TICK_LEASE).store(in_ticks, Ordering::Relaxed);
        self.word(offsets::LEASE).store(self.lease, Ordering::Release);
    }

    /// Demands times of which no two are the same, or no longer does. To be called before a [promise](Ring::promise).
    pub(super) fn distinguish(&self, distinct: bool) {
        self.word(offsets::DISTINCT).store(distinct.into(), Ordering::Relaxed);
    }

    /// Grants bytes to all lanes of the library. To be called before the first [promise](Ring::promise).
    pub(super) fn grant(&self, bytes: u64) {
        self.word(offsets::GRANT).store(bytes, Ordering::Relaxed);
    }

    /// Takes the promise back.
    pub(super) fn release(&mut self) {
        self.lease = 0;
        self.word(offsets::TICK_LEASE).store(0, Ordering::Relaxed);
        self.word(offsets::LEASE).store(0, Ordering::Release);
    }

    /// Whether nothing more will come: everything is read, and the thread has closed it.
    pub(super) fn is_over(&self) -> bool {
        // Read before the head, it would miss what was written in between.
        let head = self.word(offsets::HEAD);
        self.is_closed() && head.load(Ordering::Acquire) == self.tail
    }

    /// Whether the thread writes no more to it.
    pub(super) fn is_closed(&self) -> bool {
        self.word(offsets::CLOSED).load(Ordering::Acquire) != 0
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
                self.read_at = clock::now();
                if self.in_ticks.is_none() && head != 0 {
                    self.choose_clock();
                }
            }
        }
    }

    /// Reads which clock the thread has chosen, which is final with the first record.
    fn choose_clock(&mut self) {
        let in_ticks = self.word(offsets::CLOCK).load(Ordering::Relaxed) == clocks::TICKS;
        self.in_ticks = Some(in_ticks);
        self.conversion = self.line.filter(|_| in_ticks);
        // Ticks are only allowed by a lease in ticks.
        self.is_broken |= in_ticks && self.line.is_none();
    }

    /// Uses another conversion of ticks. Where there is none any more, the thread is to write none: its lane is given up, and
    /// it makes another one.
    pub(super) fn convert_by(&mut self, line: Option<Line>) {
        match (self.line, line) {
            (None, _) => {}
            (Some(_), Some(line)) => {
                self.line = Some(line);
                self.conversion = self.line.filter(|_| self.in_ticks == Some(true));
            }
            (Some(_), None) if self.in_ticks == Some(false) => {
                self.line = None;
                self.promise();
            }
            (Some(_), None) => self.release(),
        }
    }

    /// Makes visible what was written so far; returns the bytes that wait.
    pub(super) fn look(&mut self) -> u64 {
        self.refresh();
        self.looked_at = self.head;
        if self.is_broken { 0 } else { self.head - self.tail }
    }

    /// Confirms the last [`Ring::look`]: what was there is seen from now on.
    pub(super) fn confirm_look(&mut self) {
        self.seen = self.looked_at;
    }

    /// Whether the next record was there at the last [`Ring::look`] that was confirmed.
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
            if self.head == self.tail || self.is_broken {
                return None;
            }
            let (at, written) = (self.at(), self.head - self.tail);
            let [first, second, ..] = *self.copied(UNIT) else { return None };
            let Some(mut head) = Head::read([first, second], at, self.capacity, written) else {
                self.is_broken = true;
                return None;
            };
            if let Some(line) = &self.conversion {
                head.time = line.time(head.time);
            }
            if head.time > self.read_at {
                head.time = self.bounded_time();
            }
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
                Kind::End | Kind::Site | Kind::Text => return Some(head),
            }
        }
    }

    /// Returns the time (ns) of the next record, whose own is later than it can be: that of the reading that first showed it.
    #[cold]
    fn bounded_time(&mut self) -> u64 {
        let (tail, read_at) = (self.tail, self.read_at);
        let (_, time) =
            *self.far.insert(self.far.filter(|(place, _)| *place == tail).unwrap_or((tail, read_at)));
        time
    }

    /// Passes over the mark that [`Ring::peek`] has returned.
    #[inline]
    pub(super) fn advance(&mut self, head: &Head) {
        self.tail += head.length as u64;
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

    /// Returns the text of the next record.
    pub(super) fn text(&mut self, head: &Head) -> &[u8] {
        let words = self.copied(UNIT + head.text);
        words.as_bytes().get(UNIT..UNIT + head.text).unwrap_or_default()
    }

    /// Offset of the next record in the ring.
    #[inline]
    fn at(&self) -> usize {
        self.tail as usize & (self.capacity - 1)
    }

    /// Returns a copy of the ring from the next record on, of this many bytes at least if they are written, and none of them is
    /// after the ring's end.
    #[inline]
    fn copied(&mut self, bytes: usize) -> &[u64] {
        if self.tail < self.copied_from || self.tail + bytes as u64 > self.copied_to {
            self.copy();
        }
        let from = (self.tail - self.copied_from) as usize / 8;
        let to = (self.copied_to - self.copied_from) as usize / 8;
        self.copy.get(from..to).unwrap_or_default()
    }

    /// Copies the ring from the next record on.
    fn copy(&mut self) {
        let at = self.at();
        let written = (self.head - self.tail) as usize;
        let bytes = written.min(self.capacity - at).min(size_of_val(&*self.copy));
        let from = (HEADER_BYTES + at) / 8;
        for (copy, word) in self.copy.iter_mut().zip(&words(&self.map)[from..from + bytes / 8]) {
            *copy = word.load(Ordering::Relaxed);
        }
        self.copied_from = self.tail;
        self.copied_to = self.tail + bytes as u64;
        self.prefetch();
    }

    /// Fetches what is copied next, as far as it is written, while these records are accounted.
    #[inline]
    fn prefetch(&self) {
        let written = (self.head - self.copied_to) as usize;
        for ahead in (0..written.min(size_of_val(&*self.copy))).step_by(LINE) {
            let at = (self.copied_to as usize + ahead) & (self.capacity - 1);
            prefetch::to_read(self.word(HEADER_BYTES + at));
        }
    }

    /// Returns the word at an offset, which is a multiple of eight below the size.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        let words = words(&self.map);
        &words[(offset / 8).min(words.len() - 1)]
    }
}

/// Returns the words of a lane.
#[inline]
fn words(map: &ForeignMap) -> &[AtomicU64] {
    // SAFETY: the mapping begins at a page, lives as long as the reference, and does not change its size, as its file is sealed.
    // The other side is a process, so its words are only ever accessed atomically.
    unsafe { slice::from_raw_parts(map.as_ptr().cast(), map.length() / 8) }
}

const _: () = assert!(MAX_SITES as usize * size_of::<Option<Site>>() <= 64 * 1024);

/// Opens a lane by a name that it has in `/proc`, if it is a memfd of the right name.
///
/// # Errors
/// When it is gone, or is another file.
pub(super) fn open_lane(path: &str, for_writing: bool) -> Result<File, LaneError> {
    // By this descriptor the file can only be identified: opening a device or a pipe may have effects.
    let offered = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let own_path = format!("/proc/self/fd/{}", offered.as_raw_fd());
    let name = fs::read_link(&own_path)?;
    if name.as_os_str() != format!("/memfd:{LANE_NAME} (deleted)").as_str() {
        return Err(LaneError::NotALane("of another name"));
    }
    Ok(OpenOptions::new().read(true).write(for_writing).custom_flags(libc::O_NONBLOCK).open(own_path)?)
}
