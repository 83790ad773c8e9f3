use std::{
    io::{Read as _, Seek as _},
    os::unix::fs::symlink,
};

use tempfile::TempDir;

use super::*;

/// A folder and the names of all that is in it.
fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn refusal(path: &Path, force: bool) -> String {
    format!("{:#}", ResultFile::open(path, force).unwrap_err())
}

#[test]
fn nothing_is_there_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.json");
    let file = ResultFile::open(&path, false).unwrap();
    assert!(names(&folder).is_empty());
    let staged = file.stage(b"content".to_vec()).unwrap();
    // Not by any name: what kills us now leaves nothing.
    assert!(names(&folder).is_empty());
    staged.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(names(&folder), ["new.json"]);
    // As any file is created.
    let plain = folder.path().join("plain");
    File::create(&plain).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode(), fs::metadata(&plain).unwrap().mode());
}

#[test]
fn what_is_not_finished_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("new.json"), folder.path().join("old.json"));
    fs::write(&old, "old").unwrap();
    drop(ResultFile::open(&path, false).unwrap());
    drop(ResultFile::open(&path, false).unwrap().stage(b"content".to_vec()).unwrap());
    drop(ResultFile::open(&old, true).unwrap().stage(b"content".to_vec()).unwrap());
    let panicked = std::panic::catch_unwind(|| {
        let _staged = ResultFile::open(&old, true).unwrap().stage(b"content".to_vec()).unwrap();
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(panicked.is_err());
    assert_eq!(names(&folder), ["old.json"]);
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn streamed_content_is_in_place_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pftrace");
    let content = vec![b'x'; (1 << 20) + 1];
    let stage = |force| {
        let file = ResultFile::open(&path, force).unwrap();
        file.stage_streamed(|out| content.chunks(1_000).try_for_each(|part| Ok(out.write_all(part)?)))
    };
    let staged = stage(false).unwrap();
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    staged.commit().unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let failed = ResultFile::open(&path, true).unwrap().stage_streamed(|out| {
        out.write_all(b"half of it")?;
        bail!("no more")
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
    assert!(fs::read(&path).unwrap() == content);
    stage(true).unwrap().commit().unwrap();
    assert!(fs::read(&path).unwrap() == content);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(&folder), ["run.pftrace"]);

    // What takes no file beside it gets everything at once, too.
    let mut open = tempfile::tempfile().unwrap();
    let stream = ResultFile::open(Path::new(&format!("/dev/fd/{}", open.as_raw_fd())), false).unwrap();
    stream.stage_streamed(|out| Ok(out.write_all(&content)?)).unwrap().commit().unwrap();
    open.rewind().unwrap();
    let mut found = Vec::new();
    open.read_to_end(&mut found).unwrap();
    assert!(found == content);
}

#[test]
fn files_are_replaced_by_force_with_their_mode_and_by_what_links_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("old.json"), folder.path().join("link.json"));
    fs::write(&path, "a longer text than the new one").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    symlink("old.json", &link).unwrap();
    assert!(refusal(&path, false).ends_with("old.json exists already; --force replaces it"));
    assert!(refusal(&link, false).ends_with("link.json exists already; --force replaces it"));

    ResultFile::open(&link, true).unwrap().stage(b"new".to_vec()).unwrap().commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("old.json"));
    assert_eq!(names(&folder), ["link.json", "old.json"]);
}

#[test]
fn what_cannot_be_written_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink("nowhere", path("dangling")).unwrap();
    for force in [false, true] {
        let text = refusal(&path("none/new.json"), force);
        assert!(
            text.contains("no folder") && text.contains("create it, or name a file in another one"),
            "{text}"
        );
        assert!(refusal(folder.path(), force).contains("it is a folder"));
        assert!(refusal(&path("new/"), force).contains("no name of a file"));
        assert!(refusal(&path("dangling"), force).contains("a link to nowhere, which does not exist"));
        assert!(refusal(Path::new("/proc/new.json"), force).contains("takes no new file"));
    }
    assert_eq!(names(&folder), ["dangling"]);
}

#[test]
fn one_file_by_two_names_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("sub")).unwrap();
    fs::write(path("old"), "old").unwrap();
    fs::hard_link(path("old"), path("hard")).unwrap();
    symlink("old", path("link")).unwrap();
    symlink(".", path("here")).unwrap();
    let open = |name: &str| ResultFile::open(&path(name), true).unwrap();
    for (one, other) in [("new", "sub/../new"), ("new", "here/new"), ("old", "hard"), ("old", "link")] {
        assert!(open(one).is_same(&open(other)), "{one} {other}");
    }
    for (one, other) in [("new", "newer"), ("new", "old"), ("new", "sub/new")] {
        assert!(!open(one).is_same(&open(other)), "{one} {other}");
    }
    let null = || ResultFile::open(Path::new("/dev/null"), false).unwrap();
    assert!(!null().is_same(&null()));
}

#[test]
fn devices_are_written_as_they_are() {
    let null = ResultFile::open(Path::new("/dev/null"), false).unwrap();
    null.stage(b"content".to_vec()).unwrap().commit().unwrap();
    let full = ResultFile::open(Path::new("/dev/full"), false).unwrap();
    let error = full.stage(b"content".to_vec()).unwrap().commit().unwrap_err();
    assert_eq!(format!("{error:#}"), "cannot write /dev/full: No space left on device (os error 28)");
}

#[test]
fn descriptors_are_written_where_they_stand() {
    let mut open = tempfile::tempfile().unwrap();
    open.write_all(b"before ").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    for name in ["/proc/self/fd", "/dev/fd"] {
        let path = format!("{name}/{}", open.as_raw_fd());
        symlink(&path, &link).unwrap();
        for path in [Path::new(&path), &link] {
            let stream = ResultFile::open(path, false).unwrap();
            stream.stage(b"new ".to_vec()).unwrap().commit().unwrap();
        }
        fs::remove_file(&link).unwrap();
    }
    open.rewind().unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before new new new new ");
    assert!(refusal(Path::new("/dev/fd/987"), false).contains("Bad file descriptor"));
    let readable = File::open("/dev/null").unwrap();
    let path = format!("/dev/fd/{}", readable.as_raw_fd());
    assert!(refusal(Path::new(&path), false).contains("for reading only"));
}

#[test]
fn a_pipe_whose_reader_went_away_is_no_error() {
    let (reader, writer) = io::pipe().unwrap();
    let path = format!("/dev/fd/{}", writer.as_raw_fd());
    let stream = ResultFile::open(Path::new(&path), false).unwrap();
    drop(reader);
    stream.stage(b"content".to_vec()).unwrap().commit().unwrap();
}

#[test]
fn what_another_created_meanwhile_stays_and_so_do_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.json");
    let staged = ResultFile::open(&path, false).unwrap().stage(b"ours".to_vec()).unwrap();
    fs::write(&path, "theirs").unwrap();
    let error = staged.commit().unwrap_err().to_string();
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    let (_, kept) = error.split_once("the results are in ").unwrap();
    assert_eq!(fs::read(kept).unwrap(), b"ours");
}

#[test]
fn where_files_need_a_name_they_have_one_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.json");
    let open = Directory::open(folder.path()).unwrap();
    let unfinished = || Unfinished::named_in(&open).unwrap();
    drop(unfinished());
    assert!(names(&folder).is_empty());
    let named = unfinished();
    named.file().write_all(b"content").unwrap();
    assert_eq!(names(&folder).len(), 1);
    let file = ResultFile::open(&path, false).unwrap();
    Staged { file, content: Content::Bytes(Vec::new()), unfinished: Some(named) }.commit().unwrap();
    assert_eq!(names(&folder), ["new.json"]);
    assert_eq!(fs::read(&path).unwrap(), b"content");
}

#[test]
fn what_cannot_be_replaced_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.json");
    fs::write(&path, "a longer text than the new one").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    // As in a folder that takes no new file.
    let mut file = ResultFile::open(&path, true).unwrap();
    if let Place::Old { beside, .. } = &mut file.place {
        *beside = false;
    }
    file.stage(b"new".to_vec()).unwrap().commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}
