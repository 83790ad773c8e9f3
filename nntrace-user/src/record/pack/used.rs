//! Files that a run used, and where their contents are.

use std::{
    cmp::Reverse,
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    error::PackError,
    layout::{FILE_LIST, FILE_MAP, FILES, FileMap, place},
};
use crate::{model::plurals::one_or_many, record::facts::Checkpoint, small_file};

/// Bytes of a list of files at most: some million files.
const LARGEST_LIST: u64 = 1 << 30;

/// File that a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsedFile {
    /// Path by which it was used.
    pub(super) path: String,
    /// Path of its content: the same one, or a copy in an unpacked recording.
    pub(super) source: PathBuf,
    /// Whether it is the executable of the run.
    pub(super) is_executable: bool,
    /// Its state when it was recorded.
    pub(super) recorded: RecordedState,
    /// Reason for which it is left out whatever it is now.
    pub(super) obstacle: Option<String>,
}

/// State of a file when it was recorded, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedState {
    /// Bytes.
    pub(super) size: Option<u64>,
    /// Time of its last change, ns since 1970.
    pub(super) mtime_ns: Option<i64>,
    /// SHA-256, in hexadecimal digits.
    pub(super) sha256: Option<String>,
    /// Whether the content with this digest is another one than that of the run, as a copy may be; `None` where that is not
    /// known.
    pub(super) changed: Option<bool>,
}

/// Returns the files that the run of a recording used, the executable first and others in the order of their first use;
/// and a note on what is not among them.
///
/// # Errors
/// When there is a list of them that cannot be understood.
pub(super) fn used_files(
    folder: &Path,
    state: Option<&Checkpoint>,
) -> Result<(Vec<UsedFile>, Option<String>), PackError> {
    let map = folder.join(FILE_MAP);
    if let Some(text) = read(&map)? {
        let map: FileMap =
            serde_json::from_slice(&text).map_err(|error| damaged(&map, &error.to_string()))?;
        return Ok((of_map(folder, map), None));
    }
    let list = folder.join(FILE_LIST);
    if let Some(text) = read(&list)? {
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| damaged(&list, &error.to_string()))?;
        let rows = value.get("files").and_then(Value::as_array);
        let rows = rows.ok_or_else(|| damaged(&list, "it has no list named files"))?;
        let missing: u64 =
            ["not_listed", "lost"].iter().filter_map(|key| value.get(key)).filter_map(Value::as_u64).sum();
        let note = format!(
            "{missing} {} not in {FILE_LIST}, and so not in the pack",
            one_or_many(missing, "file that was opened is", "files that were opened are")
        );
        return Ok((of_list(rows), (missing > 0).then_some(note)));
    }
    let files = state.map(of_probes).unwrap_or_default();
    let note = format!(
        "the recording has no {FILE_LIST}: of the files that its run used, those that were probed are packed, {} in number",
        files.len()
    );
    Ok((files, Some(note)))
}

/// Reads a file; `None` when it is not there.
fn read(path: &Path) -> Result<Option<Vec<u8>>, PackError> {
    match small_file::read(path, LARGEST_LIST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PackError::read(path, error)),
    }
}

fn damaged(path: &Path, reason: &str) -> PackError {
    PackError::List { path: path.to_owned(), reason: reason.to_owned() }
}

/// Returns the files of a recording that was unpacked: all of them are in its folder.
fn of_map(folder: &Path, map: FileMap) -> Vec<UsedFile> {
    let files = map.files.into_iter().map(|file| {
        let copy = file.packed.filter(|name| name.starts_with(FILES)).filter(|name| place(name).is_some());
        let not_packed = || file.reason.unwrap_or_else(|| "it was not packed before".to_owned());
        UsedFile {
            is_executable: copy.as_ref().is_some_and(|name| name.starts_with(EXECUTABLE)),
            obstacle: if copy.is_none() { Some(not_packed()) } else { None },
            source: copy.map(|name| folder.join(name)).unwrap_or_default(),
            path: file.path,
            recorded: RecordedState {
                sha256: file.sha256,
                changed: file.changed,
                ..RecordedState::default()
            },
        }
    });
    files.collect()
}

/// Start of the name of the executable's entry.
const EXECUTABLE: &str = "files/0_";

/// Returns the files of a list that was recorded. Whatever is missing in a row, or has another type, is not known.
fn of_list(rows: &[Value]) -> Vec<UsedFile> {
    let has_mark = rows.iter().any(is_marked_executable);
    let is_executable = |row: &Value| {
        if has_mark { is_marked_executable(row) } else { text(row, "opened_by") == Some("execve") }
    };
    let mut numbered: Vec<(bool, u64, UsedFile)> = Vec::new();
    for row in rows {
        let first = row.get("first_ns").and_then(Value::as_u64).unwrap_or(u64::MAX);
        numbered.push((is_executable(row), first, of_row(row)));
    }
    // Equal keys keep their order.
    numbered.sort_by_key(|(is_executable, first, _)| (Reverse(*is_executable), *first));
    let mut files: Vec<UsedFile> = Vec::new();
    let mut places = rustc_hash::FxHashMap::default();
    for (is_executable, _, mut file) in numbered {
        file.is_executable = is_executable && !files.iter().any(|other| other.is_executable);
        match places.get(&file.path) {
            None => {
                places.insert(file.path.clone(), files.len());
                files.push(file);
            }
            Some(&place) => merge(&mut files[place], file),
        }
    }
    files
}

/// Adds what another row knows about the same path: a file may have been missing before it was created.
fn merge(file: &mut UsedFile, other: UsedFile) {
    if file.obstacle.is_some() && other.obstacle.is_none() {
        let is_executable = file.is_executable || other.is_executable;
        *file = UsedFile { is_executable, ..other };
    } else if other.obstacle.is_none() && file.recorded == RecordedState::default() {
        file.recorded = other.recorded;
    }
}

fn is_marked_executable(row: &Value) -> bool {
    row.get("is_executable").and_then(Value::as_bool) == Some(true)
}

fn of_row(row: &Value) -> UsedFile {
    let path = text(row, "path");
    let error = row.get("errno").filter(|errno| !errno.is_null());
    let error = error.map(|errno| errno.as_str().map_or_else(|| errno.to_string(), str::to_owned));
    let obstacle = if let Some(error) = error {
        Some(format!("it could not be opened: {error}"))
    } else if path.is_none_or(|path| !path.starts_with('/')) {
        Some("its path is not known".to_owned())
    } else if row.get("truncated").and_then(Value::as_bool) == Some(true) {
        Some("its path was too long to be recorded whole".to_owned())
    } else {
        None
    };
    let path = path.or_else(|| text(row, "as_given")).unwrap_or_default();
    let sha256 = text(row, "sha256").map(str::to_lowercase);
    UsedFile {
        path: path.to_owned(),
        source: path.into(),
        is_executable: false,
        recorded: RecordedState {
            size: row.get("size").and_then(Value::as_u64),
            mtime_ns: row.get("mtime_ns").and_then(Value::as_i64),
            changed: sha256.is_some().then_some(false),
            sha256,
        },
        obstacle,
    }
}

fn text<'a>(row: &'a Value, key: &str) -> Option<&'a str> {
    row.get(key)?.as_str()
}

/// Returns the files that were probed.
fn of_probes(state: &Checkpoint) -> Vec<UsedFile> {
    let command = state.run.command.first().map(Path::new).and_then(Path::file_name);
    let mut files: Vec<UsedFile> = Vec::new();
    for path in state.source.files.iter().filter(|path| path.starts_with('/')) {
        let is_executable = command.is_some() && Path::new(path).file_name() == command;
        let is_executable = is_executable && !files.iter().any(|file| file.is_executable);
        files.push(UsedFile {
            path: path.clone(),
            source: path.into(),
            is_executable,
            ..UsedFile::default()
        });
    }
    files.sort_by_key(|file| Reverse(file.is_executable));
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(files: &Value) -> Vec<UsedFile> {
        of_list(files.as_array().unwrap())
    }

    fn paths(files: &[UsedFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn the_executable_is_first_and_others_follow_in_the_order_of_their_use() {
        let files = listed(&json!([
            {"path": "/b", "first_ns": 20, "opened_by": "openat"},
            {"path": "/app", "first_ns": 15, "opened_by": "execve"},
            {"path": "/a", "first_ns": 10, "opened_by": "openat"},
            {"path": "/child", "first_ns": 30, "opened_by": "execve"},
            {"path": "/unknown"},
        ]));
        assert_eq!(paths(&files), ["/app", "/child", "/a", "/b", "/unknown"]);
        let executables: Vec<bool> = files.iter().map(|file| file.is_executable).collect();
        assert_eq!(executables, [true, false, false, false, false]);
    }

    #[test]
    fn a_mark_says_which_one_is_the_executable() {
        let files = listed(&json!([
            {"path": "/bin/sh", "first_ns": 1, "opened_by": "execve", "is_executable": false},
            {"path": "/app", "first_ns": 5, "opened_by": "mapped", "is_executable": true},
        ]));
        assert_eq!(paths(&files), ["/app", "/bin/sh"]);
        assert!(files[0].is_executable && !files[1].is_executable);
    }

    #[test]
    fn a_path_is_there_once() {
        let files = listed(&json!([
            {"path": "/a", "first_ns": 1, "errno": "ENOENT"},
            {"path": "/a", "first_ns": 2, "size": 7, "mtime_ns": 3, "sha256": "AB"},
            {"path": "/a", "first_ns": 3, "size": 8},
        ]));
        assert_eq!(paths(&files), ["/a"]);
        assert_eq!(files[0].obstacle, None);
        let expected = RecordedState {
            size: Some(7),
            mtime_ns: Some(3),
            sha256: Some("ab".into()),
            changed: Some(false),
        };
        assert_eq!(files[0].recorded, expected);
    }

    #[test]
    fn rows_that_name_no_file_are_left_out_with_their_reason() {
        let files = listed(&json!([
            {"path": null, "as_given": "model.bin"},
            {"path": "/missing", "errno": "ENOENT"},
            {"path": "/cut", "truncated": true},
            {"path": 5, "as_given": 7},
            "nonsense",
            {"path": "/fine", "size": "large", "unknown": {}, "errno": null},
        ]));
        let obstacles: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.obstacle.as_deref().unwrap_or("none")))
            .collect();
        assert_eq!(
            obstacles,
            [
                ("model.bin", "its path is not known"),
                ("/missing", "it could not be opened: ENOENT"),
                ("/cut", "its path was too long to be recorded whole"),
                ("", "its path is not known"),
                ("/fine", "none"),
            ]
        );
    }

    #[test]
    fn copies_of_an_unpacked_recording_are_in_its_folder() {
        let map = json!({"version": 1, "files": [
            {"path": "/app", "packed": "files/0_app", "sha256": "aa", "size": 1, "changed": true, "reason": null},
            {"path": "/etc/x", "packed": null, "reason": "it is gone"},
            {"path": "/evil", "packed": "/etc/shadow"},
            {"path": "/worse", "packed": "files/../../x"},
            {"path": "/list", "packed": "recording/files.json"},
        ]});
        let files = of_map(Path::new("/there"), serde_json::from_value(map).unwrap());
        assert_eq!(files[0].source, Path::new("/there/files/0_app"));
        assert!(files[0].is_executable);
        assert_eq!(files[0].recorded.changed, Some(true));
        assert_eq!(files[1].obstacle.as_deref(), Some("it is gone"));
        for file in &files[2..] {
            assert_eq!(file.obstacle.as_deref(), Some("it was not packed before"), "{}", file.path);
        }
    }
}
