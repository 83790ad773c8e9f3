//! Writer of a lane, as a thread of a program is one.

use std::{ffi::c_void, fs::File, os::fd::AsRawFd as _};

use memmap2::MmapRaw;
use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};
use nntrace_common::{
    express::{HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, offsets, record_bytes},
    record::{LaneRecord, RecordKind},
};

use super::{ExpressEvent, TID};

/// Lane that the tests write.
pub(super) struct Lane {
    pub(super) file: File,
    pub(super) map: MmapRaw,
    pub(super) ring_bytes: usize,
    pub(super) head: u64,
    pub(super) defined: Vec<&'static str>,
}

impl Lane {
    pub(super) fn new(key: u64, ring_bytes: usize) -> Self {
        let file = memfd_create(LANE_NAME, MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC).unwrap();
        let file = File::from(file);
        file.set_len((HEADER_BYTES + ring_bytes) as u64).unwrap();
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        let map = MmapRaw::map_raw(&file).unwrap();
        let lane = Self { file, map, ring_bytes, head: 0, defined: Vec::new() };
        lane.set(offsets::MAGIC, MAGIC);
        lane.set(offsets::KEY, key);
        lane.set(offsets::RING_BYTES, ring_bytes as u64);
        lane
    }

    pub(super) fn set(&self, offset: usize, word: u64) {
        // SAFETY: inside of the mapping, at a multiple of eight bytes from a page's begin; this test alone writes it.
        unsafe { self.map.as_mut_ptr().cast::<c_void>().cast::<u64>().add(offset / 8).write_volatile(word) };
    }

    pub(super) fn get(&self, offset: usize) -> u64 {
        // SAFETY: as above.
        unsafe { self.map.as_ptr().cast::<c_void>().cast::<u64>().add(offset / 8).read_volatile() }
    }

    /// Writes a record; `false` where there is no room.
    pub(super) fn write(&mut self, kind: Kind, value: u32, second: u64, text: &[u8]) -> bool {
        let bytes = record_bytes(text.len());
        let at = self.head as usize % self.ring_bytes;
        let skip = if at + bytes > self.ring_bytes { self.ring_bytes - at } else { 0 };
        if (self.head - self.get(offsets::TAIL)) as usize + skip + bytes > self.ring_bytes {
            return false;
        }
        if skip > 0 {
            self.set(HEADER_BYTES + at, Head::word(Kind::Skip, skip, 0));
        }
        let at = HEADER_BYTES + (at + skip) % self.ring_bytes;
        self.set(at, Head::word(kind, bytes, value));
        self.set(at + 8, second);
        for (number, byte) in text.iter().enumerate() {
            // SAFETY: inside of the mapping, which this test alone writes.
            unsafe { self.map.as_mut_ptr().add(at + 16 + number).write(*byte) };
        }
        self.head += (skip + bytes) as u64;
        self.set(offsets::HEAD, self.head);
        true
    }

    pub(super) fn begin(&mut self, text: &'static str, time: u64) -> bool {
        let site = self.defined.iter().position(|known| *known == text).unwrap_or_else(|| {
            let site = self.defined.len();
            if self.write(Kind::Define, site as u32, text.len() as u64, text.as_bytes()) {
                self.defined.push(text);
            }
            site
        });
        site < self.defined.len() && self.write(Kind::Site, site as u32, time, b"")
    }

    pub(super) fn offer(&self, time: u64, key: u64) -> ExpressEvent {
        let file = i64::from(self.file.as_raw_fd());
        let kind = RecordKind::Lane as u32;
        ExpressEvent::lane(LaneRecord {
            kind,
            tid: TID,
            tgid: std::process::id(),
            reserved: 0,
            time,
            file,
            key,
        })
    }
}
