//! Packs: a recording in one file, with the files that its run used. `docs/packs.md` is the format.

mod error;
mod frames;
pub(super) mod layout;
mod notes;
mod secrets;
mod selection;
#[cfg(test)]
mod tests;
mod used;

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

pub use error::PackError;
use frames::FrameWriter;
use layout::{CONTENTS, Contents, Entry, FILE_LIST, FILE_MAP, KIND, RECORDING, VERSION, hex, place};
use nix::libc;
use notes::{Notes, Topic};
use selection::Limits;
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use super::{
    facts::Checkpoint,
    format::{EXTENSION, is_recording},
    read::Files,
};
use crate::caller::FileRights;

/// Mode of every file in a pack: nothing from a pack is run by mistake.
const MODE: u32 = 0o644;

/// Options of packing.
#[derive(Clone, Copy, Debug)]
pub struct PackOptions {
    /// Whether the files that the run used are packed.
    pub with_files: bool,
    /// Bytes of such a file at most.
    pub max_file: u64,
    /// Whether files that may hold secrets are packed.
    pub with_secrets: bool,
}

/// Pack that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of files besides the recording.
    pub files: usize,
    /// Bytes of the pack.
    pub bytes: u64,
    /// Notes for whoever hands it on.
    pub notes: Vec<String>,
}

/// Entry, and where its content is.
struct Item {
    entry: Entry,
    content: Content,
}

enum Content {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// Packs a recording to a writer. The same recording and files give the same bytes.
///
/// # Errors
/// When the recording cannot be read, the pack cannot be written, or something changes meanwhile: what was written is no
/// pack then.
pub fn pack(folder: &Path, out: &mut impl Write, options: &PackOptions) -> Result<Packed, PackError> {
    if !is_recording(folder) {
        return Err(PackError::NoRecording(folder.to_owned()));
    }
    // One that was cut before its first state can be packed, too.
    let state = Files::open(folder)?.state().ok().map(|(_, state, _)| state);
    let mut notes = Notes::default();
    note_variables(state.as_deref(), &mut notes);
    let mut items = recording(folder)?;
    let mut files = 0;
    if options.with_files {
        let (used, note) = used::used_files(folder, state.as_deref())?;
        if let Some(note) = note {
            notes.add(Topic::Pack, note);
        }
        let limits = Limits { max_file: options.max_file, with_secrets: options.with_secrets };
        let selection = selection::select(&used, limits, &mut notes);
        let map = json(&selection.map, folder)?;
        items.push(Item::of_bytes(FILE_MAP, map));
        files = selection.entries.len();
        let copies = selection.entries.into_iter();
        items.extend(copies.map(|(entry, path)| Item { entry, content: Content::File(path) }));
    }
    let bytes = write(out, folder, &items)?;
    Ok(Packed { files, bytes, notes: notes.into_texts() })
}

/// Notes on variables of the environment that may be secrets.
fn note_variables(state: Option<&Checkpoint>, notes: &mut Notes) {
    let names = state.into_iter().flat_map(|state| state.run.environment.keys());
    let names: Vec<&str> = names.map(String::as_str).filter(|name| secrets::in_variable(name)).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        let note = format!(
            "the recording, and so the pack, has variables of the environment that may be secrets: {names}"
        );
        notes.add(Topic::Secret, note);
    }
}

/// Returns the files of the recording itself.
fn recording(folder: &Path) -> Result<Vec<Item>, PackError> {
    let error = |source| PackError::read(folder, source);
    let entries = fs::read_dir(folder).map_err(error)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = paths.map_err(error)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    // Whatever order the folder has.
    paths.sort_unstable();
    let list = folder.join(FILE_LIST);
    paths.extend(list.exists().then_some(list));
    paths.into_iter().map(Item::of_recording).collect()
}

impl Item {
    /// Creates the item of a file of the recording.
    fn of_recording(path: PathBuf) -> Result<Self, PackError> {
        let name = path.file_name().and_then(OsStr::to_str).map(|name| format!("{RECORDING}{name}"));
        let name = name.filter(|name| place(name).is_some() && Header::new_ustar().set_path(name).is_ok());
        let Some(name) = name else { return Err(PackError::Name(path)) };
        let error = |source| PackError::read(&path, source);
        // A link in a recording from elsewhere may lead to a file of ours.
        if !fs::symlink_metadata(&path).map_err(error)?.is_file() {
            return Err(error(io::Error::other("it is no regular file")));
        }
        let mut digest = Sha256::new();
        let size = io::copy(&mut open(&path).map_err(error)?, &mut digest).map_err(error)?;
        Ok(Self { entry: Entry { name, size, sha256: hex(digest) }, content: Content::File(path) })
    }

    /// Creates an item of bytes.
    fn of_bytes(name: &str, bytes: Vec<u8>) -> Self {
        let sha256 = hex(Sha256::new_with_prefix(&bytes));
        let entry = Entry { name: name.to_owned(), size: bytes.len() as u64, sha256 };
        Self { entry, content: Content::Bytes(bytes) }
    }

    /// Appends it to an archive.
    fn append(&self, archive: &mut impl Write) -> Result<(), PackError> {
        let Self { entry: Entry { name, size, sha256 }, content } = self;
        archive
            .write_all(header(name, *size).map_err(PackError::Write)?.as_bytes())
            .map_err(PackError::Write)?;
        match content {
            Content::Bytes(bytes) => archive.write_all(bytes).map_err(PackError::Write)?,
            Content::File(path) => {
                let read = |source| PackError::read(path, source);
                let mut file = open(path).map_err(read)?.take(*size);
                let mut digest = Sha256::new();
                let mut chunk = vec![0; 64 << 10];
                let mut left = *size;
                while left > 0 {
                    let length = match file.read(&mut chunk) {
                        Ok(0) => return Err(PackError::Changed(path.clone())),
                        Ok(length) => length,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Err(error) => return Err(read(error)),
                    };
                    digest.update(&chunk[..length]);
                    archive.write_all(&chunk[..length]).map_err(PackError::Write)?;
                    left -= length as u64;
                }
                // The list of contents, with the digest, is written already.
                if hex(digest) != *sha256 {
                    return Err(PackError::Changed(path.clone()));
                }
            }
        }
        archive.write_all(&vec![0; layout::padding(*size) as usize]).map_err(PackError::Write)
    }
}

/// Opens a file. What has become a pipe meanwhile is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let _rights = FileRights::of_caller()?;
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Returns the header of an entry, which says nothing of where and when it was packed.
fn header(name: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(MODE);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

fn json(value: &impl serde::Serialize, folder: &Path) -> Result<Vec<u8>, PackError> {
    let text = serde_json::to_vec_pretty(value);
    let mut text = text.map_err(|error| PackError::read(folder, error.into()))?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the pack; returns its bytes.
fn write(out: &mut impl Write, folder: &Path, items: &[Item]) -> Result<u64, PackError> {
    let contents = Contents {
        kind: KIND.to_owned(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        entries: items.iter().map(|item| item.entry.clone()).collect(),
    };
    let mut archive = FrameWriter::new(out);
    Item::of_bytes(CONTENTS, json(&contents, folder)?).append(&mut archive)?;
    items.iter().try_for_each(|item| item.append(&mut archive))?;
    archive.write_all(&[0; layout::END as usize]).map_err(PackError::Write)?;
    archive.finish().map_err(PackError::Write)
}
