//! Lanes: whatever a program writes into the memory that it shares with us, as many marks are counted as a plain reader
//! finds before the first record that is none.

use std::{fs::File, os::unix::fs::FileExt as _};

use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};
use nntrace_common::express::{HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, MIN_RING_BYTES, UNIT, offsets};
use nntrace_user::live::express::account_lane;

const KEY: u64 = 1;

/// The first two bytes are the bytes written, in units; after them is the ring.
///
/// # Panics
/// When the lane is counted otherwise than by the plain reader.
pub fn check(data: &[u8]) {
    let Some((head, content)) = data.split_first_chunk::<2>() else { return };
    let head = u64::from(u16::from_le_bytes(*head)) * UNIT as u64;
    let mut ring = [0; MIN_RING_BYTES];
    let length = content.len().min(MIN_RING_BYTES);
    ring[..length].copy_from_slice(&content[..length]);
    let file = memory(head, &ring);
    let found = account_lane(&file, KEY, true).expect("it has the form of a lane");
    assert_eq!((found.marks, found.damaged != 0), plainly(head, &ring));
}

/// Returns a lane with this content.
fn memory(head: u64, ring: &[u8; MIN_RING_BYTES]) -> File {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(LANE_NAME, flags).expect("the kernel has memory"));
    file.set_len((HEADER_BYTES + MIN_RING_BYTES) as u64).expect("the memory can grow");
    let words = [
        (offsets::MAGIC, MAGIC),
        (offsets::KEY, KEY),
        (offsets::RING_BYTES, MIN_RING_BYTES as u64),
        (offsets::HEAD, head),
    ];
    for (offset, word) in words {
        file.write_all_at(&word.to_le_bytes(), offset as u64).expect("the memory can be written");
    }
    file.write_all_at(ring, HEADER_BYTES as u64).expect("the memory can be written");
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).expect("the memory can be sealed");
    file
}

/// Counts the marks up to the first record that is none; returns whether there is one.
fn plainly(head: u64, ring: &[u8; MIN_RING_BYTES]) -> (u64, bool) {
    if head > MIN_RING_BYTES as u64 {
        return (0, true);
    }
    let (mut at, mut marks, mut sites) = (0, 0, Vec::new());
    while at < head as usize {
        let word = |at: usize| u64::from_le_bytes(ring[at..at + 8].try_into().unwrap_or_default());
        let Some(found) = Head::read([word(at), word(at + 8)], at, MIN_RING_BYTES, head - at as u64) else {
            return (marks, true);
        };
        match found.kind {
            Kind::Define => sites.push(found.site),
            Kind::Site if !sites.contains(&found.site) => return (marks, true),
            Kind::End | Kind::Site | Kind::Text => marks += 1,
            Kind::Skip => {}
        }
        at += found.length;
    }
    (marks, false)
}
