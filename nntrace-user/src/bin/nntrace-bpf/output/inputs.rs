//! Files that this run reads: no result replaces one of them, by whatever name.

use std::{
    collections::HashSet,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Depth to which the files of a folder are inputs: a folder of recordings, their files, and the files in packs.
const DEPTH: usize = 3;

/// Device and number of each.
static INPUTS: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);

/// Adds a file, or the files in a folder, that this run reads. What is not there is none.
pub fn add(path: &Path) {
    let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    add_to(inputs.get_or_insert_default(), path, DEPTH);
}

fn add_to(inputs: &mut HashSet<(u64, u64)>, path: &Path, depth: usize) {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => _ = inputs.insert(identity(&found)),
        Ok(found) if found.is_dir() && depth > 0 => {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                add_to(inputs, &entry.path(), depth - 1);
            }
        }
        _ => {}
    }
}

/// Whether a file is one of them.
///
/// # Errors
/// When the kernel does not describe the file.
pub fn has(file: &File) -> io::Result<bool> {
    let identity = identity(&file.metadata()?);
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(inputs.as_ref().is_some_and(|inputs| inputs.contains(&identity)))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
