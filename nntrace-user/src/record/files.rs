//! `files.json`: the files that the processes of a run opened. `docs/recording-files.md` is its format.

mod entry;
mod examination;
mod image;
mod open_flags;

use std::{cell::RefCell, collections::hash_map, path::PathBuf, rc::Rc};

use rustc_hash::FxHashMap;
use serde::Serialize;

use self::entry::Entry;
pub(super) use self::image::{ImageKind, kind as image_kind};
use super::error::RecordError;
use crate::model::opened_files::{FileObserver, ObserveFiles, OpenedFile};

/// Name of the file in a recording.
pub(super) const NAME: &str = "files.json";

/// Version of its format.
const VERSION: u32 = 1;

/// Entries at most; uses of further files are counted.
const MOST_ENTRIES: usize = 65_536;

/// Files that are held open at most, as they cannot be reached again.
const MOST_HELD: usize = 128;

/// List of the files of a run, as it grows.
pub(super) struct FileList {
    list: Rc<RefCell<List>>,
    /// Bytes that are hashed at the end at most, of all files together.
    hash_bytes: u64,
}

/// List as it is written.
#[derive(Debug, Serialize)]
struct List {
    version: u32,
    files: Vec<Entry>,
    /// Uses of files that the list has no room for.
    not_listed: u64,
    /// Uses of files whose reports found no room.
    lost: u64,
    #[serde(skip)]
    places: FxHashMap<Key, usize>,
    /// Number of files that are held open.
    #[serde(skip)]
    held: usize,
    #[serde(skip)]
    is_changed: bool,
}

/// Identity of an entry: a file, or a path that is not resolved, and the outcome.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    path: Option<PathBuf>,
    /// Path as it was given, and the process, where there is no other.
    unresolved: Option<(Option<PathBuf>, u32)>,
    error: Option<i32>,
    /// Whether the path is that of another root.
    in_other_root: bool,
    /// Whether the path is the folder of a file without a name.
    is_nameless: bool,
}

impl FileList {
    /// Creates an empty list; at the end at most this many bytes of its files are hashed.
    pub(super) fn new(hash_bytes: u64) -> Self {
        let list = List {
            version: VERSION,
            files: Vec::new(),
            not_listed: 0,
            lost: 0,
            places: FxHashMap::default(),
            held: 0,
            is_changed: true,
        };
        Self { list: Rc::new(RefCell::new(list)), hash_bytes }
    }

    /// Returns the observer of the run's files.
    pub(super) fn observer(&self) -> FileObserver {
        FileObserver::new(Listing(Rc::clone(&self.list)))
    }

    /// Returns the text of the list if it has changed since the last call.
    pub(super) fn changed(&self) -> Result<Option<Vec<u8>>, RecordError> {
        let mut list = self.list.borrow_mut();
        if !std::mem::take(&mut list.is_changed) {
            return Ok(None);
        }
        let mut text =
            serde_json::to_vec_pretty(&*list).map_err(|error| RecordError::Failed(error.to_string()))?;
        text.push(b'\n');
        Ok(Some(text))
    }

    /// Names the threads that used the files first.
    pub(super) fn name_threads(&self, mut name: impl FnMut(u32, u32) -> String) {
        let mut list = self.list.borrow_mut();
        list.is_changed = true;
        for entry in &mut list.files {
            entry.name_thread(&mut name);
        }
    }

    /// Examines the files: their kinds, and as many hashes as there may be. Takes as long as it takes to read them.
    pub(super) fn examine(&self) {
        let mut list = self.list.borrow_mut();
        list.is_changed = true;
        examination::examine(&mut list.files, self.hash_bytes);
    }
}

impl List {
    fn add(&mut self, file: OpenedFile) {
        self.is_changed = true;
        let key = Key {
            path: file.path.clone(),
            unresolved: file.path.is_none().then(|| (file.given.clone(), file.pid)),
            error: file.error,
            in_other_root: file.reached_by.is_some(),
            is_nameless: file.flags.is_some_and(open_flags::are_nameless),
        };
        let is_full = self.files.len() >= MOST_ENTRIES;
        match self.places.entry(key) {
            hash_map::Entry::Occupied(place) => self.files[*place.get()].add(&file),
            hash_map::Entry::Vacant(_) if is_full => self.not_listed += 1,
            hash_map::Entry::Vacant(place) => {
                place.insert(self.files.len());
                let entry = Entry::new(file, self.held < MOST_HELD);
                self.held += usize::from(entry.held.is_some());
                self.files.push(entry);
            }
        }
    }
}

/// The list's side of the run.
struct Listing(Rc<RefCell<List>>);

impl ObserveFiles for Listing {
    fn file(&mut self, file: OpenedFile) {
        self.0.borrow_mut().add(file);
    }

    fn lost(&mut self, uses: u64) {
        let mut list = self.0.borrow_mut();
        list.is_changed |= list.lost != uses;
        list.lost = uses;
    }
}

#[cfg(test)]
mod tests;
