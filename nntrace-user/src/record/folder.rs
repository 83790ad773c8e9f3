//! Folders of recordings that are to be written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    error::RecordError,
    files,
    format::{EXTENSION, is_recording},
    stream_files::PART,
};

/// Creates the folder of a recording, or takes an empty one; returns whether it is new. A recording that is there is removed
/// first if it is to be replaced.
///
/// # Errors
/// When the folder has anything else in it, or cannot be written.
pub(super) fn claim(folder: &Path, replace: bool) -> Result<bool, RecordError> {
    let error = |source| RecordError::write(folder, source);
    match fs::create_dir(folder) {
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
            if replace && is_recording(folder) {
                remove_files(folder)?;
            }
            if fs::read_dir(folder).map_err(error)?.next().is_some() {
                return Err(RecordError::Exists(folder.to_owned()));
            }
            Ok(false)
        }
        result => result.map(|()| true).map_err(error),
    }
}

/// Checks that a recording can be written to a folder later.
///
/// # Errors
/// When the folder has anything but a recording that is to be replaced in it, or cannot be written.
pub(super) fn check(folder: &Path, replace: bool) -> Result<(), RecordError> {
    if replace && is_recording(folder) {
        return Ok(());
    }
    if claim(folder, false)? {
        fs::remove_dir(folder).map_err(|source| RecordError::write(folder, source))?;
    }
    Ok(())
}

/// Returns the folder of the recording of this number: the first is the one that was named, the second `NAME-2`.
pub(super) fn numbered(folder: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return folder.to_owned();
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}-{number}"))
}

/// Removes the files of a recording; others stay.
fn remove_files(folder: &Path) -> Result<(), RecordError> {
    let error = |source| RecordError::write(folder, source);
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_list = || ["", PART].iter().any(|end| path.ends_with(format!("{}{end}", files::NAME)));
        if path.extension().is_some_and(|extension| extension == EXTENSION) || is_list() {
            fs::remove_file(&path).map_err(|source| RecordError::write(&path, source))?;
        }
    }
    Ok(())
}
