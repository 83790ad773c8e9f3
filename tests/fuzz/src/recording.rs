//! Checks that any folder of files gives a snapshot that is the same each time, whatever is damaged in it.

use std::{fs, path::Path};

use anyhow::Result;
use nntrace_user::{
    record::{self, ReplayOptions},
    report::{
        snapshot::{ClusterRow, Snapshot},
        tables,
    },
};
use tempfile::TempDir;

/// Files of a folder at most.
const MOST_FILES: usize = 8;

/// Flag of an input: checksums and sizes are made right, as no fuzzer guesses them.
const SEALED: u8 = 1;

/// Checks one input: a byte of flags, then files, each a byte for its name, two bytes for its length, and its content.
///
/// # Panics
/// When the snapshots differ, or the times of a cluster do not add up. Also when the files cannot be created.
pub fn check(data: &[u8]) {
    let Some((flags, files)) = data.split_first() else { return };
    let folder = folder(files, flags & SEALED != 0).expect("files can be made in memory");
    let options = ReplayOptions { with_details: true, with_timelines: true, ..ReplayOptions::default() };
    let Some(snapshot) = run(folder.path(), &options) else { return };
    snapshot.clusters.iter().for_each(adds_up);
    let json = json(&snapshot);
    assert_eq!(run(folder.path(), &options).as_ref().map(self::json), Some(json), "twice is not the same");
    let _ = (tables::render(&snapshot), tables::details(&snapshot));
}

/// Writes the files of an input into a folder.
fn folder(mut data: &[u8], is_sealed: bool) -> Result<TempDir> {
    let folder = tempfile::Builder::new().tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    for _ in 0..MOST_FILES {
        let Some(([name, low, high], rest)) = data.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (content, rest) = rest.split_at(length);
        let mut content = content.to_vec();
        if is_sealed {
            seal(&mut content);
        }
        fs::write(folder.path().join(file_name(*name)), content)?;
        data = rest;
    }
    Ok(folder)
}

/// Returns the name of a file: that of the run, of threads, of CPUs, and of single threads.
fn file_name(code: u8) -> String {
    match code {
        0 => "run.nnt".into(),
        1 => "threads.nnt".into(),
        2..=5 => format!("cpu{}.nnt", code - 2),
        _ => format!("main_{code}.nnt"),
    }
}

/// Makes magic numbers, versions, sizes and checksums right, as `docs/format.md` has them.
fn seal(file: &mut [u8]) {
    const FILE_HEADER: usize = 32;
    const BLOCK_HEADER: usize = 64;
    let Some((header, mut blocks)) = file.split_first_chunk_mut::<FILE_HEADER>() else { return };
    header[..12].copy_from_slice(b"NNTREC\r\n\x01\0\0\0");
    // All files are of one recording.
    header[20..28].fill(0);
    put_checksum(header);
    while let Some((header, rest)) = blocks.split_first_chunk_mut::<BLOCK_HEADER>() {
        header[..4].copy_from_slice(b"NNB\n");
        header[5] &= 1;
        let stored = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let stored = rest.len().min(stored as usize);
        let (content, rest) = rest.split_at_mut(stored);
        let stored = (stored as u32).to_le_bytes();
        header[8..12].copy_from_slice(&stored);
        if header[5] == 0 {
            header[12..16].copy_from_slice(&stored);
        } else {
            // Millions of alike events are read in time, but not within that of an input.
            header[14..16].fill(0);
        }
        header[56..60].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
        put_checksum(header);
        blocks = rest;
    }
}

/// Puts the checksum of a header into its last four bytes.
fn put_checksum(header: &mut [u8]) {
    let (fields, checksum) = header.split_at_mut(header.len() - 4);
    checksum.copy_from_slice(&crc32fast::hash(fields).to_le_bytes());
}

/// Replays a recording; `None` when there is no result, which is no failure.
fn run(folder: &Path, options: &ReplayOptions) -> Option<Snapshot> {
    match record::replay(folder, options) {
        Ok(recorded) => {
            let _ = recorded.timelines();
            Some(Snapshot::of(&recorded.findings()))
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn json(snapshot: &Snapshot) -> String {
    serde_json::to_string(snapshot).expect("every snapshot can be written")
}

/// The sums of CPUs are those of the checkpoint, whatever it says; clusters are made of events.
fn adds_up(cluster: &ClusterRow) {
    let active: u64 = cluster.active.iter().map(|row| row.ns).sum();
    let idle: u64 = cluster.idle.iter().map(|row| row.ns).sum();
    let all = active + idle + cluster.idle_unknown_ns + cluster.offline_ns + cluster.unknown_ns;
    let concurrency: u64 = cluster.concurrency.iter().map(|row| row.ns).sum();
    assert_eq!(concurrency, all, "{cluster:?}");
}
