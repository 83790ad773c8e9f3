//! A collector in the program itself, that reads the lanes of its threads.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nntrace_common::express::{HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, is_ring_size, offsets};

// SAFETY: the semaphore, which is aligned, and which this program may write as the kernel does.
unsafe extern "C" {
    safe static nntrace_lanes_wanted_: AtomicU16;
}

/// Sets the number of collectors that want lanes.
pub fn set_wanted(count: u16) {
    nntrace_lanes_wanted_.store(count, Ordering::Relaxed);
}

/// Lane that is read.
pub struct Lane {
    memory: NonNull<AtomicU64>,
    pub ring_bytes: usize,
    tail: u64,
    /// Time of the last record, ns.
    last: u64,
    /// Texts of the sites, by number.
    sites: BTreeMap<u32, String>,
}

// SAFETY: the mapping may be used by any thread.
unsafe impl Send for Lane {}

impl Lane {
    /// Opens and maps an offered lane, and checks its form. It has no lease.
    pub fn open(file: i64, key: u64) -> Self {
        let path = format!("/proc/self/fd/{file}");
        let name = fs::read_link(&path).unwrap();
        assert_eq!(name.to_str().unwrap(), format!("/memfd:{LANE_NAME} (deleted)"));
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let seals = SealFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GET_SEALS).unwrap());
        assert!(seals.contains(SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW));
        let lane = Self::map(&file);
        assert_eq!(lane.load(offsets::MAGIC), MAGIC);
        assert_eq!(lane.load(offsets::KEY), key);
        assert_eq!(lane.load(offsets::RING_BYTES), lane.ring_bytes as u64);
        lane
    }

    fn map(file: &File) -> Self {
        let bytes = file.metadata().unwrap().len() as usize;
        assert!(is_ring_size((bytes - HEADER_BYTES) as u64), "{bytes}");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: where nothing is mapped yet.
        let memory =
            unsafe { mmap(None, NonZero::new(bytes).unwrap(), protection, MapFlags::MAP_SHARED, file, 0) };
        Self {
            memory: memory.unwrap().cast(),
            ring_bytes: bytes - HEADER_BYTES,
            tail: 0,
            last: 0,
            sites: BTreeMap::new(),
        }
    }

    /// Promises to read the lane until a time, ns.
    pub fn lease(&self, until: u64) {
        // All that a library may have.
        self.word(offsets::GRANT).store(64 << 20, Ordering::Relaxed);
        self.word(offsets::LEASE).store(until, Ordering::Release);
    }

    /// Returns the time of the last record, ns.
    pub fn now(&self) -> u64 {
        self.last
    }

    /// Whether the thread writes no more to it.
    pub fn is_closed(&self) -> bool {
        self.load(offsets::CLOSED) == 1
    }

    /// Reads what was written since the last time, and frees its room: `define TEXT`, `begin TEXT` of sites, `end`, and
    /// payloads without the process.
    pub fn read(&mut self) -> Vec<String> {
        self.read_timed().into_iter().map(|(_, record)| record).collect()
    }

    /// Reads the same, each with its time, ns.
    pub fn read_timed(&mut self) -> Vec<(u64, String)> {
        let records = self.peek();
        self.word(offsets::TAIL).store(self.tail, Ordering::Release);
        records
    }

    /// Reads what was written since the last time. Its room stays taken.
    pub fn peek(&mut self) -> Vec<(u64, String)> {
        let mut records = Vec::new();
        let written = self.load(offsets::HEAD);
        while self.tail < written {
            let at = self.tail as usize & (self.ring_bytes - 1);
            let words = [0, 8].map(|word| self.load(HEADER_BYTES + at + word));
            let head = Head::read(words, at, self.ring_bytes, written - self.tail).expect("a record");
            self.last = self.last.max(head.time);
            assert!(head.time == self.last || head.time == 0);
            let record = match head.kind {
                Kind::Skip => None,
                Kind::End => Some("end".to_owned()),
                Kind::Site => Some(format!("begin {}", self.sites[&head.site])),
                Kind::Text => Some(without_process(&self.text(at, &head))),
                Kind::Define => {
                    let text = self.text(at, &head);
                    let record = format!("define {text}");
                    assert_eq!(self.sites.insert(head.site, text), None);
                    Some(record)
                }
            };
            records.extend(record.map(|record| (self.last, record)));
            self.tail += head.length as u64;
        }
        records
    }

    /// Returns the text of the record at an offset of the ring.
    fn text(&self, at: usize, head: &Head) -> String {
        let words = (2..head.length / 8).map(|word| self.load(HEADER_BYTES + at + 8 * word));
        let mut text: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        assert!(text.drain(head.text..).all(|byte| byte == 0), "the padding");
        String::from_utf8(text).unwrap()
    }

    /// Returns the key that it is offered under.
    pub fn key(&self) -> u64 {
        self.load(offsets::KEY)
    }

    fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < HEADER_BYTES + self.ring_bytes);
        // SAFETY: within the mapping, which lives as long as `self`; all accesses are atomic.
        unsafe { self.memory.byte_add(offset).as_ref() }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: it was mapped like this, and nothing refers to it any more.
        unsafe { munmap(self.memory.cast(), HEADER_BYTES + self.ring_bytes) }.unwrap();
    }
}

/// Returns a payload without its process.
fn without_process(text: &str) -> String {
    let (kind, rest) = text.split_once('|').unwrap();
    let (_process, rest) = rest.split_once('|').unwrap();
    format!("{kind}|{rest}")
}
