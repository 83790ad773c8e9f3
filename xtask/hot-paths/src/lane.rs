//! Lane full of sections, to be read.

use std::{fs::File, os::unix::fs::FileExt as _};

use anyhow::{Context as _, Result, ensure};
use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};
use nntrace_common::express::{
    HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, MAX_RING_BYTES, UNIT, offsets, record_bytes,
};

/// Key of the lane.
pub const KEY: u64 = 1;
/// Texts of the places where sections begin.
const SITES: [&str; 4] = ["[NN_LR_PE]execute", "[NN_LC_PCO]conv2d", "[NN_LC_PCO]relu", "[NN_LC_PTR]copy"];
/// Time between two marks, ns.
const STEP: u64 = 100;

/// Returns the memory of a lane with this many sections, of four in each other at most.
///
/// # Errors
/// When they are too many, or there is no memory.
pub fn memory(sections: u64) -> Result<File> {
    let records = records(sections);
    ensure!(records.len() <= MAX_RING_BYTES, "a lane has no room for {sections} sections");
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(LANE_NAME, flags).context("no memory for a lane")?);
    let write = || -> std::io::Result<()> {
        file.set_len((HEADER_BYTES + MAX_RING_BYTES) as u64)?;
        for (offset, word) in [
            (offsets::MAGIC, MAGIC),
            (offsets::KEY, KEY),
            (offsets::RING_BYTES, MAX_RING_BYTES as u64),
            (offsets::HEAD, records.len() as u64),
        ] {
            file.write_all_at(&word.to_le_bytes(), offset as u64)?;
        }
        file.write_all_at(&records, HEADER_BYTES as u64)
    };
    write().context("the lane cannot be written")?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW))
        .context("the lane cannot be sealed")?;
    Ok(file)
}

/// Returns the records of the sections: runs of four begins and four ends.
fn records(sections: u64) -> Vec<u8> {
    let mut records = Vec::new();
    let mut push = |kind: Kind, value: u32, second: u64, text: &[u8]| {
        let length = record_bytes(text.len());
        let end = records.len() + length;
        records.extend(Head::word(kind, length, value).to_le_bytes());
        records.extend(second.to_le_bytes());
        records.extend(text);
        records.resize(end, 0);
        debug_assert!(end.is_multiple_of(UNIT));
    };
    for (site, text) in (0..).zip(SITES) {
        push(Kind::Define, site, text.len() as u64, text.as_bytes());
    }
    let mut time = STEP;
    let mut next = || {
        time += STEP;
        time
    };
    let mut left = sections;
    while left > 0 {
        let depth = left.min(SITES.len() as u64);
        (0..depth).for_each(|site| push(Kind::Site, site as u32, next(), b""));
        (0..depth).for_each(|_| push(Kind::End, 0, next(), b""));
        left -= depth;
    }
    records
}
