use std::{fs, path::Path};

use nix::libc;
use nntrace_common::opened_files::FileCall;
use serde_json::Value;

use super::*;
use crate::model::opened_files::FileUse;

/// Successful `openat` of a path.
fn opened(path: &Path, time: u64) -> OpenedFile {
    OpenedFile {
        pid: 1,
        tid: 2,
        time,
        how: FileUse::Call(FileCall::OpenAt),
        given: path.file_name().map(PathBuf::from),
        is_truncated: false,
        path: Some(path.to_owned()),
        is_resolved_late: false,
        reached_by: None,
        flags: Some(0),
        error: None,
        is_executable: false,
    }
}

fn text(list: &FileList) -> Value {
    serde_json::from_slice(&list.changed().unwrap().unwrap()).unwrap()
}

#[test]
fn a_file_with_one_outcome_is_one_entry() {
    let list = FileList::new(0);
    let mut observer = list.observer();
    let path = Path::new("/nowhere/net.tflite");
    observer.file(opened(path, 10));
    observer.file(OpenedFile { error: Some(libc::ENOENT), ..opened(path, 11) });
    let writing = Some(u64::from((libc::O_WRONLY | libc::O_TRUNC).cast_unsigned()));
    observer.file(OpenedFile { flags: writing, is_executable: true, ..opened(path, 12) });
    observer.file(OpenedFile { how: FileUse::Probed, flags: None, ..opened(path, 13) });
    observer.lost(4);
    let text = text(&list);
    let [found, missing] = text["files"].as_array().unwrap().as_slice() else { panic!("{text}") };
    assert_eq!((&found["count"], &found["first_ns"], &found["errno"]), (&2.into(), &10.into(), &Value::Null));
    assert_eq!(found["flags"], serde_json::json!(["O_RDONLY", "O_WRONLY", "O_TRUNC"]));
    assert_eq!((&found["is_executable"], &found["is_probed"]), (&true.into(), &true.into()));
    assert_eq!((&missing["count"], &missing["errno"]), (&1.into(), &"ENOENT".into()));
    assert_eq!((&missing["not_hashed"], &found["not_hashed"]), (&Value::Null, &"not_ended".into()));
    assert_eq!((&text["version"], &text["not_listed"], &text["lost"]), (&1.into(), &0.into(), &4.into()));
}

#[test]
fn paths_that_are_not_known_are_those_of_a_process() {
    let list = FileList::new(0);
    let mut observer = list.observer();
    for pid in [1, 1, 2] {
        observer.file(OpenedFile { pid, path: None, is_resolved_late: true, ..opened(Path::new("/net"), 1) });
    }
    let text = text(&list);
    let counts: Vec<&Value> = text["files"].as_array().unwrap().iter().map(|file| &file["count"]).collect();
    assert_eq!(counts, [2, 1]);
    assert_eq!((&text["files"][0]["path"], &text["files"][0]["as_given"]), (&Value::Null, &"net".into()));
}

#[test]
fn the_list_is_written_again_only_when_it_has_changed() {
    let list = FileList::new(0);
    assert!(list.changed().unwrap().is_some());
    assert!(list.changed().unwrap().is_none());
    list.observer().lost(0);
    assert!(list.changed().unwrap().is_none());
    list.observer().lost(1);
    assert!(list.changed().unwrap().is_some());
}

#[test]
fn beyond_the_limit_files_are_counted() {
    let list = FileList::new(0);
    let mut observer = list.observer();
    for number in 0..MOST_ENTRIES + 3 {
        observer.file(opened(Path::new(&format!("/proc/none/{number}")), 1));
    }
    observer.file(opened(Path::new("/proc/none/0"), 1));
    let list = list.list.borrow();
    assert_eq!((list.files.len(), list.not_listed), (MOST_ENTRIES, 3));
}

#[test]
fn files_are_hashed_within_the_budget_models_first() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let paths = [
        file("notes.txt", b"123456"),
        file("large.tflite", &[&b"\0\0\0\0TFL3"[..], &[0; 100]].concat()),
        file("net.gguf", b"GGUF"),
        file("small.txt", b"abc"),
        PathBuf::from("/dev/null"),
        dir.path().join("gone"),
        dir.path().to_owned(),
    ];
    let list = FileList::new(8);
    let mut observer = list.observer();
    for path in &paths {
        observer.file(opened(path, 1));
    }
    list.examine();
    let text = text(&list);
    let seen: Vec<String> = text["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let hash = file["sha256"].as_str().map(|hash| hash[..8].to_owned());
            format!(
                "{} {} {}",
                file["kind"].as_str().unwrap(),
                file["size"],
                hash.map_or(file["not_hashed"].to_string(), |hash| hash)
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "none 6 \"budget\"",
            "tflite 108 \"budget\"",
            "gguf 4 b83633aa",
            "none 3 ba7816bf",
            "none null \"not_a_file\"",
            "none null \"unreadable\"",
            "none null \"not_a_file\"",
        ]
    );
}
