use std::{cell::RefCell, os::unix::fs::symlink, rc::Rc};

use nntrace_common::opened_files::{FileCall, FileRecord, PATH_BYTES};
use zerocopy::IntoBytes as _;

use super::*;
use crate::model::opened_files::ObserveFiles;

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<OpenedFile>>>);

impl ObserveFiles for Kept {
    fn file(&mut self, file: OpenedFile) {
        self.0.borrow_mut().push(file);
    }

    fn lost(&mut self, _: u64) {}
}

/// Process 7 in a fake proc file system: works in `/data`, has `/data/net.bin` open as 3 and the folder `/models` as 4.
struct Fake {
    dir: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let process = dir.path().join("7");
        fs::create_dir_all(process.join("fd")).unwrap();
        for (name, target) in [
            ("cwd", "/data"),
            ("root", "/"),
            ("exe", "/opt/app (deleted)"),
            ("fd/3", "/data/net.bin"),
            ("fd/4", "/models"),
        ] {
            symlink(target, process.join(name)).unwrap();
        }
        Self { dir }
    }

    fn take(&self, record: FileRecord, given: &[u8], names: &[&str]) -> OpenedFile {
        let kept = Kept::default();
        let mut follower = FileFollower::new(FileObserver::new(kept.clone()), None);
        follower.proc = self.dir.path().to_owned();
        follower.take(&report(record, given, names));
        kept.0.take().pop().unwrap()
    }

    /// Resolves a path that is given to `openat`.
    fn resolve(&self, dirfd: i32, result: i32, given: &str) -> (Option<String>, bool) {
        let file = self.take(FileRecord { dirfd, result, ..OPENAT }, given.as_bytes(), &[]);
        (file.path.map(|path| path.display().to_string()), file.is_resolved_late)
    }
}

const OPENAT: FileRecord = FileRecord {
    time: 5,
    flags: 0,
    call: FileCall::OpenAt as u32,
    tgid: 7,
    tid: 8,
    dirfd: libc::AT_FDCWD,
    result: 3,
    given: 0,
    names: 0,
    place: 0,
    mount_namespace: 0,
    reserved: 0,
};

fn report(record: FileRecord, given: &[u8], names: &[&str]) -> Vec<u8> {
    let given = if given.is_empty() { Vec::new() } else { [given, &[0]].concat() };
    let names: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), &[0]].concat()).collect();
    let record = FileRecord { given: given.len() as u32, names: names.len() as u32, ..record };
    [record.as_bytes(), &given, &names].concat()
}

#[test]
fn names_of_the_kernel_are_the_path() {
    let fake = Fake::new();
    let of_file = FileRecord { place: Place::File as u32, ..OPENAT };
    let file = fake.take(of_file, b"link.bin", &["net.bin", "data", "mnt"]);
    assert_eq!(file.path.as_deref(), Some(Path::new("/mnt/data/net.bin")));
    assert_eq!(file.given.as_deref(), Some(Path::new("link.bin")));
    assert_eq!((file.pid, file.tid, file.time, file.error), (7, 8, 5, None));
    assert!(!file.is_resolved_late && !file.is_truncated && !file.is_executable);

    let missing = FileRecord { place: Place::Folder as u32, result: -libc::ENOENT, ..OPENAT };
    let file = fake.take(missing, b"../x/./y", &["data", "mnt"]);
    assert_eq!((file.path.as_deref(), file.error), (Some(Path::new("/mnt/x/y")), Some(libc::ENOENT)));

    let nameless = FileRecord { flags: u64::from(libc::O_TMPFILE.cast_unsigned()) | 2, ..of_file };
    let file = fake.take(nameless, b"/tmp", &["#123", "tmp"]);
    assert_eq!(file.path.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(fake.take(of_file, b"/", &[]).path.as_deref(), Some(Path::new("/")));
}

#[test]
fn files_of_the_profiler_are_not_passed_on() {
    let fake = Fake::new();
    let kept = Kept::default();
    let mut follower = FileFollower::new(FileObserver::new(kept.clone()), Some(Path::new("/var/lib/hooks")));
    follower.proc = fake.dir.path().to_owned();
    let missing = FileRecord { result: -libc::ENOENT, ..OPENAT };
    for path in ["/var/lib/hooks/plans/1", "/var/lib/hooks/library", "/var/lib/hooks-of-others"] {
        follower.take(&report(missing, path.as_bytes(), &[]));
    }
    let passed_on = kept.0.take();
    assert_eq!(passed_on.len(), 1);
    assert_eq!(passed_on[0].path.as_deref(), Some(Path::new("/var/lib/hooks-of-others")));
}

#[test]
fn without_them_the_process_is_asked_in_time() {
    let fake = Fake::new();
    let late = |path: &str| (Some(path.to_owned()), true);
    assert_eq!(fake.resolve(libc::AT_FDCWD, 3, "net.bin"), late("/data/net.bin"));
    // The descriptor is another file by now.
    assert_eq!(fake.resolve(libc::AT_FDCWD, 3, "./config"), late("/data/config"));
    assert_eq!(fake.resolve(4, 9, "a//b"), late("/models/a/b"));
    assert_eq!(fake.resolve(5, 9, "a"), (None, true));
    assert_eq!(fake.resolve(libc::AT_FDCWD, 9, "/etc/../opt/x"), late("/opt/x"));
    assert_eq!(fake.resolve(4, -libc::ENOENT, "gone"), late("/models/gone"));
    let missing = (Some("/gone".to_owned()), false);
    assert_eq!(fake.resolve(libc::AT_FDCWD, -libc::ENOENT, "//gone/."), missing);
    let exec = FileRecord { call: FileCall::Execve as u32, result: 0, ..OPENAT };
    let file = fake.take(exec, b"./app", &[]);
    assert_eq!((file.path.as_deref(), file.flags), (Some(Path::new("/opt/app")), None));
}

#[test]
fn a_process_below_another_root_means_its_own_files() {
    let fake = Fake::new();
    let root = fake.dir.path().join("7/root");
    fs::remove_file(&root).unwrap();
    symlink("/jail", root).unwrap();
    assert_eq!(fake.resolve(libc::AT_FDCWD, -libc::ENOENT, "/gone"), (Some("/jail/gone".to_owned()), true));
}

#[test]
fn a_process_with_mounts_of_its_own_is_reached_through_its_root() {
    let fake = Fake::new();
    for (process, mounts) in [("7", "mnt:[1]"), ("self", "mnt:[2]")] {
        fs::create_dir_all(fake.dir.path().join(process).join("ns")).unwrap();
        symlink(mounts, fake.dir.path().join(process).join("ns/mnt")).unwrap();
    }
    let of_file = FileRecord { place: Place::File as u32, ..OPENAT };
    let reached_by = |record| fake.take(record, b"/net", &["net"]).reached_by;
    assert_eq!(reached_by(of_file), Some(fake.dir.path().join("7/root/net")));
    // The kernel has seen it, and the process may be gone.
    assert_eq!(reached_by(FileRecord { mount_namespace: 2, ..of_file }), None);
    assert_eq!(
        reached_by(FileRecord { mount_namespace: 3, tgid: 9, ..of_file }),
        Some(fake.dir.path().join("9/root/net"))
    );
}

#[test]
fn paths_that_could_not_be_read_and_too_long_ones_are_marked() {
    let fake = Fake::new();
    let file = fake.take(FileRecord { result: -libc::EFAULT, ..OPENAT }, b"", &[]);
    assert_eq!((file.given, file.path, file.error), (None, None, Some(libc::EFAULT)));
    let long = vec![b'x'; PATH_BYTES - 1];
    assert!(fake.take(FileRecord { result: -libc::ENAMETOOLONG, ..OPENAT }, &long, &[]).is_truncated);
    assert!(!fake.take(FileRecord { result: -libc::ENAMETOOLONG, ..OPENAT }, &long[1..], &[]).is_truncated);
}

#[test]
fn other_bytes_are_refused() {
    let bytes = report(OPENAT, b"net", &["a"]);
    assert!(Report::decode(&bytes).is_some());
    for cut in 0..bytes.len() {
        assert_eq!(Report::decode(&bytes[..cut]), None);
    }
    assert_eq!(Report::decode(&report(FileRecord { call: 99, ..OPENAT }, b"net", &[])), None);
}
