//! Examination of the listed files at the end of a run: kinds, sizes and hashes.
//!
//! In a thread of its own, which runs only when nobody else wants the CPU: targets may still run.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    thread,
};

use nix::libc;
use sha2::{Digest as _, Sha256};

use super::super::hex;
use super::{
    entry::{Entry, NotHashed},
    image::{Image, ImageKind},
};

/// Bytes that are read at a time.
const READ: usize = 1 << 20;

/// Examines files, and hashes this many bytes at most: models and code first, then the others, in their order.
pub(super) fn examine(entries: &mut [Entry], bytes: u64) {
    thread::scope(|scope| {
        let work = thread::Builder::new().name("nntrace-files".into());
        let started = work.spawn_scoped(scope, || {
            be_last();
            examine_all(entries, bytes);
        });
        // Without a thread, the files stay as they were seen first.
        if let Err(error) = started {
            log::warn!("the files of the run are not examined: {error}");
        }
    });
}

/// Gives this thread the lowest priority.
fn be_last() {
    // SAFETY: takes numbers only; 0 is the calling thread. Where it is refused, the thread runs as others do.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

fn examine_all(entries: &mut [Entry], mut bytes: u64) {
    let mut kinds: Vec<(bool, usize)> = Vec::new();
    for (place, entry) in entries.iter_mut().enumerate() {
        if entry.is_opened() {
            entry.not_hashed = identify(entry).err();
            kinds.push((entry.kind == ImageKind::None, place));
        }
    }
    kinds.sort_unstable();
    for (_, place) in kinds {
        let entry = &mut entries[place];
        if entry.not_hashed.is_some() {
            continue;
        }
        let size = entry.size.unwrap_or(0);
        if size > bytes {
            entry.not_hashed = Some(NotHashed::Budget);
            continue;
        }
        bytes -= size;
        entry.not_hashed = hash(entry).err();
    }
}

/// Returns an opened file with its path, which is a regular one.
fn open(entry: &Entry) -> Result<(PathBuf, File), NotHashed> {
    let path = entry.file().ok_or(NotHashed::NotAFile)?.to_owned();
    let file = match &entry.held {
        Some(held) => held.try_clone(),
        // The path of another root is another file's here.
        None if entry.is_in_other_root() => return Err(NotHashed::Unreadable),
        // A pipe without a writer must not be waited for.
        None => OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(&path),
    };
    let file = file.map_err(|_| NotHashed::Unreadable)?;
    let metadata = file.metadata().map_err(|_| NotHashed::Unreadable)?;
    if metadata.is_file() { Ok((path, file)) } else { Err(NotHashed::NotAFile) }
}

/// Notes what a file is, with its size and time now.
fn identify(entry: &mut Entry) -> Result<(), NotHashed> {
    let (path, mut file) = open(entry)?;
    let unreadable = |_: io::Error| NotHashed::Unreadable;
    let Image { kind, build_id, machine } = Image::of(&path, &mut file).map_err(unreadable)?;
    (entry.kind, entry.build_id, entry.machine) = (kind, build_id, machine);
    entry.note(&file.metadata().map_err(unreadable)?);
    Ok(())
}

fn hash(entry: &mut Entry) -> Result<(), NotHashed> {
    let (_, mut file) = open(entry)?;
    let unreadable = |_: io::Error| NotHashed::Unreadable;
    file.rewind().map_err(unreadable)?;
    let before = (entry.size, entry.mtime_ns);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; READ];
    // No more than its size: a file that grows is one that changes.
    let mut rest = (&mut file).take(entry.size.unwrap_or(0));
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    entry.note(&file.metadata().map_err(unreadable)?);
    if (entry.size, entry.mtime_ns) != before {
        return Err(NotHashed::Changing);
    }
    entry.sha256 = Some(hex::digits(&hash.finalize()));
    Ok(())
}
