//! Decision on each file that a run used: its copy in the pack, or the reason why it has none.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use nix::{
    libc,
    sys::statfs::{
        CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, FsType, PROC_SUPER_MAGIC, SYSFS_MAGIC,
        TRACEFS_MAGIC, fstatfs,
    },
};
use sha2::{Digest as _, Sha256};

use super::{
    layout::{Entry, FILES, FileMap, MappedFile, VERSION, hex},
    notes::{Notes, Topic},
    secrets,
    used::{RecordedState, UsedFile},
};
use crate::{caller::FileRights, record::files::image_kind};

/// Folders of devices and of the kernel.
const KERNEL_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// File systems of the kernel, wherever they are mounted.
const KERNEL_FILE_SYSTEMS: [FsType; 6] =
    [CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC];
/// Bytes of a file's name in a pack at most, its number left aside.
const LONGEST_NAME: usize = 64;
/// Reason why a file of the kernel is left out.
const OF_KERNEL: &str = "it is a device, or a file of the kernel";
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Limits of what is packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a file at most.
    pub(super) max_file: u64,
    /// Whether files that may hold secrets are packed.
    pub(super) with_secrets: bool,
}

/// Files of the run in a pack.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Entries, and the files that have their contents.
    pub(super) entries: Vec<(Entry, PathBuf)>,
    /// Map of all files.
    pub(super) map: FileMap,
}

/// File as it is now.
struct Examined {
    sha256: String,
    size: u64,
    changed: Option<bool>,
}

/// Reason why a file is left out.
struct LeftOut {
    reason: String,
    /// Topic of the note on it; `None` for what nobody expects in a pack.
    topic: Option<Topic>,
}

impl LeftOut {
    fn silently(reason: &str) -> Self {
        Self { reason: reason.to_owned(), topic: None }
    }

    fn because(topic: Topic, reason: String) -> Self {
        Self { reason, topic: Some(topic) }
    }
}

/// Selects the files of a run that are packed.
pub(super) fn select(used: &[UsedFile], limits: Limits, notes: &mut Notes) -> Selection {
    let mut selection =
        Selection { map: FileMap { version: VERSION, files: Vec::new() }, ..Selection::default() };
    let mut known: HashMap<String, String> = HashMap::new();
    let mut number = 0;
    for file in used {
        let mapped = match examine(file, limits, notes) {
            Ok(Examined { sha256, size, changed }) => {
                if changed == Some(true) && file.recorded.changed != Some(true) {
                    notes.add(
                        Topic::Changed,
                        format!("{} has changed since the recording: it is packed as it is now", file.path),
                    );
                }
                let name = known.entry(sha256.clone()).or_insert_with(|| {
                    if !file.is_executable {
                        number += 1;
                    }
                    let number = if file.is_executable { 0 } else { number };
                    let name = format!("{FILES}{number}_{}", plain_name(&file.path));
                    let entry = Entry { name: name.clone(), size, sha256: sha256.clone() };
                    selection.entries.push((entry, file.source.clone()));
                    name
                });
                MappedFile {
                    path: file.path.clone(),
                    packed: Some(name.clone()),
                    sha256: Some(sha256),
                    size: Some(size),
                    changed,
                    reason: None,
                }
            }
            Err(LeftOut { reason, topic }) => {
                if let Some(topic) = topic {
                    notes.add(topic, format!("{} is not in the pack: {reason}", file.path));
                }
                MappedFile { path: file.path.clone(), reason: Some(reason), ..MappedFile::default() }
            }
        };
        selection.map.files.push(mapped);
    }
    selection
}

/// Examines a file and its content.
fn examine(file: &UsedFile, limits: Limits, notes: &mut Notes) -> Result<Examined, LeftOut> {
    if let Some(obstacle) = &file.obstacle {
        return Err(LeftOut::silently(obstacle));
    }
    if is_of_kernel(Path::new(&file.path)) {
        return Err(LeftOut::silently(OF_KERNEL));
    }
    let (path, mut content) = open(&file.source)?;
    let metadata = content.metadata().map_err(|error| unreadable(&error))?;
    check_size(metadata.len(), limits.max_file)?;
    let mut secret = None;
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = read_chunk(&mut content, &mut chunk).map_err(|error| unreadable(&error))?;
        if size == 0 {
            secret = secret_in(file, &path, &chunk[..length]);
            if let Some(why) = secret.filter(|_| !limits.with_secrets) {
                let reason = format!("it may hold a secret, as {why}; --with-secrets packs it");
                return Err(LeftOut::because(Topic::Secret, reason));
            }
        }
        digest.update(&chunk[..length]);
        size += length as u64;
        // It may be written to at this moment.
        check_size(size, limits.max_file)?;
        if length < chunk.len() {
            break;
        }
    }
    if let Some(why) = secret {
        notes.add(Topic::Secret, format!("{} is in the pack, and may hold a secret, as {why}", file.path));
    }
    let sha256 = hex(digest);
    let changed = changed(&file.recorded, &sha256, size, mtime_ns(&metadata));
    Ok(Examined { sha256, size, changed })
}

/// Returns the reason why a file may hold a secret, by its paths and by what it begins with. What kind of file it is, its
/// content decides: a list may claim anything.
fn secret_in(file: &UsedFile, resolved: &Path, begin: &[u8]) -> Option<&'static str> {
    let head = &begin[..begin.len().min(secrets::HEAD)];
    let kind = image_kind(resolved, head);
    let in_path = |path: &str| secrets::in_path(path, kind);
    in_path(&file.path).or_else(|| in_path(&resolved.to_string_lossy())).or_else(|| secrets::in_head(head))
}

/// Opens a regular file; also returns its path without links. Nothing else is opened: a device may act on that, and a pipe
/// wait.
fn open(path: &Path) -> Result<(PathBuf, File), LeftOut> {
    let _rights = FileRights::of_caller().map_err(|error| unreadable(&error))?;
    let path = fs::canonicalize(path).map_err(|error| unreadable(&error))?;
    if is_of_kernel(&path) {
        return Err(LeftOut::silently(OF_KERNEL));
    }
    if !fs::metadata(&path).map_err(|error| unreadable(&error))?.is_file() {
        return Err(LeftOut::silently("it is no regular file"));
    }
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file =
        File::options().read(true).custom_flags(flags).open(&path).map_err(|error| unreadable(&error))?;
    let kind = fstatfs(&file).map(|found| found.filesystem_type());
    if kind.is_ok_and(|kind| KERNEL_FILE_SYSTEMS.contains(&kind)) {
        return Err(LeftOut::silently(OF_KERNEL));
    }
    Ok((path, file))
}

fn is_of_kernel(path: &Path) -> bool {
    KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn unreadable(error: &io::Error) -> LeftOut {
    if error.kind() == io::ErrorKind::NotFound {
        LeftOut::because(Topic::Gone, "it is gone".to_owned())
    } else {
        LeftOut::because(Topic::Unreadable, format!("it cannot be read: {error}"))
    }
}

fn check_size(size: u64, max_file: u64) -> Result<(), LeftOut> {
    if size <= max_file {
        return Ok(());
    }
    let reason = format!("it has {size} bytes, more than the {max_file} of --max-file");
    Err(LeftOut::because(Topic::TooLarge, reason))
}

/// Reads until the chunk is full or the file ends; returns the number of bytes.
fn read_chunk(file: &mut File, chunk: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < chunk.len() {
        match file.read(&mut chunk[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn mtime_ns(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Whether a file has another content than it had; `None` if nothing is known about that. The digest decides where there
/// is one: what was written again with the same content is unchanged.
fn changed(recorded: &RecordedState, sha256: &str, size: u64, mtime_ns: i64) -> Option<bool> {
    let RecordedState { size: old_size, mtime_ns: old_mtime, sha256: old_sha256, changed } = recorded;
    if let Some(old) = old_sha256 {
        return if old == sha256 { *changed } else { Some(true) };
    }
    let differs = |known: bool, equal: bool| known.then_some(!equal);
    let by_size = differs(old_size.is_some(), *old_size == Some(size));
    let by_time = differs(old_mtime.is_some(), *old_mtime == Some(mtime_ns));
    by_size.into_iter().chain(by_time).reduce(|one, other| one || other)
}

/// Returns the name of a file as it is in a pack: plain characters, short, with its extension.
fn plain_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let mut name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.len() > LONGEST_NAME {
        // What is cut is in front: the extension matters most.
        name = name.split_off(name.len() - LONGEST_NAME);
    }
    name
}
