use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

const KIND: Kind = Kind { is_part: |name| name.to_string_lossy().ends_with(".x"), last: Some("last.x") };

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns a folder with old results in `old`.
fn with_old() -> TempDir {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join("old")).unwrap();
    for name in ["last.x", "a.x", "gone.x"] {
        fs::write(parent.path().join("old").join(name), "old").unwrap();
    }
    parent
}

fn write(folder: &ResultFolder, name: &str, text: &str) {
    folder.create_file(name).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_new_folder_is_there_when_it_is_settled() {
    let parent = tempfile::tempdir().unwrap();
    let place = parent.path().join("new");
    ResultFolder::check(&place, KIND, false).unwrap();
    drop(ResultFolder::create(&place, KIND, false).unwrap());
    assert_eq!(names(parent.path()), [""; 0]);
    let mut folder = ResultFolder::create(&place, KIND, false).unwrap();
    write(&folder, "a.x", "1");
    assert!(!place.exists() && folder.has("a.x") && folder.create_file("a.x").is_err());
    folder.settle().unwrap();
    assert_eq!(names(parent.path()), ["new"]);
    // It is the same folder from there on.
    write(&folder, "b.x", "2");
    folder.replace_file("a.x", b"3").unwrap();
    folder.remove_file("b.x").unwrap();
    drop(folder);
    assert_eq!(
        (names(&place), fs::read(place.join("a.x")).unwrap()),
        (vec!["a.x".to_owned()], b"3".to_vec())
    );
}

#[test]
fn old_results_stay_until_the_new_ones_are_settled() {
    let parent = with_old();
    let place = parent.path().join("old");
    let before = names(&place);
    assert!(matches!(ResultFolder::check(&place, KIND, false), Err(FolderError::Replaceable(_))));
    let abandoned = ResultFolder::create(&place, KIND, true).unwrap();
    write(&abandoned, "a.x", "new");
    drop(abandoned);
    assert_eq!(names(&place), before);
    let mut folder = ResultFolder::create(&place, KIND, true).unwrap();
    write(&folder, "last.x", "new");
    write(&folder, "b.x", "new");
    assert_eq!(fs::read(place.join("last.x")).unwrap(), b"old");
    folder.settle().unwrap();
    write(&folder, "c.x", "new");
    assert_eq!(names(&place), ["b.x", "c.x", "last.x"]);
    assert_eq!(fs::read(place.join("last.x")).unwrap(), b"new");
}

#[test]
fn nothing_else_is_removed() {
    let parent = with_old();
    let place = parent.path().join("old");
    fs::write(place.join("thesis"), "").unwrap();
    let before = names(&place);
    let error = ResultFolder::create(&place, KIND, true).unwrap_err().to_string();
    assert!(error.contains("thesis in it is not part"), "{error}");
    assert!(matches!(
        ResultFolder::check(&place, KIND, false),
        Err(FolderError::Exists(_) | FolderError::Replaceable(_))
    ));
    assert_eq!(names(&place), before);
    // A folder is no file of results, whatever its name.
    fs::remove_file(place.join("thesis")).unwrap();
    fs::create_dir(place.join("d.x")).unwrap();
    assert!(matches!(ResultFolder::check(&place, KIND, true), Err(FolderError::Foreign { .. })));
}

#[test]
fn places_that_are_taken_or_impossible_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name);
    fs::write(path("file"), "").unwrap();
    symlink("nowhere", path("link")).unwrap();
    for name in ["file", "link"] {
        assert!(
            matches!(ResultFolder::check(&path(name), KIND, true), Err(FolderError::Exists(_))),
            "{name}"
        );
    }
    for name in ["none/new", "file/new"] {
        assert!(ResultFolder::check(&path(name), KIND, true).is_err(), "{name}");
    }
    // Who comes first stays.
    let mut folder = ResultFolder::create(&path("new"), KIND, true).unwrap();
    fs::create_dir(path("new")).unwrap();
    fs::write(path("new/mine"), "").unwrap();
    assert!(matches!(folder.settle(), Err(FolderError::Exists(_))));
    assert_eq!(names(parent.path()), ["file", "link", "new"]);
    assert_eq!(names(&path("new")), ["mine"]);
}

#[test]
fn links_are_not_followed_in_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let victim = parent.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let folder = ResultFolder::create(&parent.path().join("new"), KIND, false).unwrap();
    symlink(&victim, folder.path().join("a.x")).unwrap();
    symlink(&victim, folder.path().join("b.x.part")).unwrap();
    assert!(folder.create_file("a.x").is_err());
    folder.replace_file("b.x", b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
}
