//! Files whose code a process has mapped, and a path by which *we* can open each.
//!
//! The path in a maps file is the target's: in a container it may be another file here, or none, and a file replaced
//! by an update while it was mapped is no longer at its path. So a path is used only if it leads to the mapped file,
//! by its inode. In this order:
//!
//! 1. the path as it is, which also stays valid when the process ends;
//! 2. `/proc/<pid>/root<path>`: the target's own view, for another mount namespace or a chroot;
//! 3. `/proc/<pid>/map_files/<range>`: the mapped file itself, deleted or not. Only this needs a privilege
//!    (`CAP_SYS_ADMIN` or `CAP_CHECKPOINT_RESTORE`).
//!
//! With that privilege the third also identifies the mapped file. Without it the inode in the maps file does; its
//! device is no help, as btrfs and overlayfs show another one there than `stat` returns.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use thiserror::Error;

use super::object_id::{FileState, ObjectId};
use super::pinned_file::PinnedFile;
use super::proc_maps::{self, Mapping};
use super::process::{ProcessError, Processes};
use crate::caller::{self, FileRights};

/// File to search for mark functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// The file, in the state in which it was found.
    pub state: FileState,
    /// Path by which [`Object::pin`] finds it.
    pub path: PathBuf,
    /// Path in the target's view; with ` (deleted)` if the file is no longer there.
    pub display_path: PathBuf,
    /// The file, where it was checked that the user may read it.
    pub(super) held: Option<PinnedFile>,
}

/// Reason why a file cannot be searched.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// Nothing at its path is the mapped file, and the mapped file itself may not be opened.
    #[error(
        "the mapped file was deleted or replaced, or is in another mount namespace; opening it as it is mapped needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: run with sudo, or restart the target"
    )]
    NotPermitted,
    /// The file was unmapped, or the process ended.
    #[error("it was unmapped meanwhile, or its process ended: {0}")]
    Gone(io::Error),
    /// A device, a directory or the like.
    #[error("not a regular file: give the path of an executable or of a shared library")]
    NotAFile,
    /// The file cannot be reached.
    #[error("cannot open it: {0}; check the path and its permissions")]
    Io(io::Error),
}

/// File that cannot be searched.
#[derive(Debug)]
pub(crate) struct Unopened {
    /// Path in the target's view.
    pub display_path: PathBuf,
    /// Reason.
    pub reason: OpenError,
}

/// Files that a process had mapped, by their mappings.
#[derive(Debug, Default)]
pub(crate) struct KnownMappings(HashMap<Mapping, Object>);

/// Files whose code a process has mapped.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Files that can be opened, each once, in the order of their addresses: usually the executable first.
    pub objects: Vec<Object>,
    /// Files that cannot be opened.
    pub failed: Vec<Unopened>,
}

impl Object {
    /// Returns the identity of the file.
    pub(crate) const fn id(&self) -> ObjectId {
        self.state.id
    }

    /// Opens the file at a path of ours, as `--lib PATH` gives it.
    ///
    /// # Errors
    /// When there is none, or it is not a regular file.
    pub(crate) fn at(path: &Path) -> Result<Self, OpenError> {
        let find = || {
            let _rights = FileRights::of_caller()?;
            PinnedFile::at(path)
        };
        let found = find().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => OpenError::NotAFile,
            _ => OpenError::Io(error),
        })?;
        // The user must be able to read what he names.
        caller::open(&found).map_err(OpenError::Io)?;
        Ok(Self {
            state: found.state(),
            path: path.to_owned(),
            display_path: path.to_owned(),
            held: Some(found),
        })
    }

    /// Updates the state if the file was written to, or replaced by one with the same inode number. If the path no longer leads to
    /// it, the state stays.
    fn seen_again(mut self) -> Self {
        let now = std::fs::metadata(&self.path).map(|found| FileState::from(&found));
        if let Some(state) = now.ok().filter(|now| now.id == self.id()) {
            self.state = state;
        }
        self
    }

    /// Whether the file, which was found again, is still in the state in which it was found first.
    pub(crate) fn is_as_found(&self, pinned: &PinnedFile) -> bool {
        std::fs::metadata(&**pinned).is_ok_and(|found| FileState::from(&found) == self.state)
    }

    /// Finds the file again, to examine and to probe it.
    ///
    /// # Errors
    /// When it is gone, or another one has taken its place.
    pub(crate) fn pin(&self) -> io::Result<PinnedFile> {
        if let Some(held) = &self.held {
            return Ok(held.clone());
        }
        let found = PinnedFile::at(&self.path)?;
        if found.id() == self.id() {
            Ok(found)
        } else {
            Err(io::Error::other("another file has taken its place since it was mapped"))
        }
    }
}

impl Objects {
    /// Finds the files that a process has mapped now. Libraries that it loads later need another look.
    ///
    /// # Errors
    /// When its maps cannot be read: it has ended, or tracing it is not permitted. A file that cannot be opened is no
    /// error, but in `failed`.
    pub(crate) fn mapped_by(processes: &Processes, pid: u32) -> Result<Self, ProcessError> {
        Self::mapped_since(processes, pid, &mut KnownMappings::default())
    }

    /// Finds the files that a process has mapped now, given those that were found before, which become those of now. A process
    /// that loads hundreds of libraries is looked at as often: each file is looked up once; after that, changes are noticed only
    /// through its path.
    ///
    /// # Errors
    /// As of [`Objects::mapped_by`].
    pub(crate) fn mapped_since(
        processes: &Processes,
        pid: u32,
        known: &mut KnownMappings,
    ) -> Result<Self, ProcessError> {
        let dir = processes.dir(pid);
        let maps = processes.maps(pid)?;
        let mut before = std::mem::take(&mut known.0);
        let mut all = Self::default();
        let mut seen_mappings = HashSet::new();
        let mut seen_files = HashSet::new();
        for mapping in proc_maps::executable(&maps) {
            // Two subvolumes of one btrfs share device and inode numbers here: the path distinguishes them.
            if !seen_mappings.insert((mapping.device, mapping.inode, mapping.path.clone())) {
                continue;
            }
            let found = before
                .remove(&mapping)
                .map_or_else(|| resolve(&dir, &mapping), |known| Ok(known.seen_again()));
            if let Ok(object) = &found {
                known.0.insert(mapping.clone(), object.clone());
            }
            match found {
                Ok(object) if seen_files.insert(object.id()) => all.objects.push(object),
                Ok(_) => {}
                Err(reason) => all.failed.push(Unopened { display_path: mapping.path, reason }),
            }
        }
        Ok(all)
    }
}

/// Finds the mapped file. `dir` is the process's directory in /proc.
fn resolve(dir: &Path, mapping: &Mapping) -> Result<Object, OpenError> {
    let mapped = dir.join("map_files").join(format!("{:x}-{:x}", mapping.start, mapping.end));
    let truth = std::fs::metadata(&mapped);
    if truth.as_ref().is_ok_and(|file| !file.is_file()) {
        return Err(OpenError::NotAFile);
    }
    let names = || [Some(mapping.path.as_path()), mapping.path_before_deletion()].into_iter().flatten();
    let rooted = |name: &Path| dir.join("root").join(name.strip_prefix("/").unwrap_or(name));
    let regular = |path: &Path| std::fs::metadata(path).ok().filter(Metadata::is_file);

    let state = match &truth {
        Ok(file) => FileState::from(file),
        Err(error) => names()
            .filter_map(|name| regular(&rooted(name)))
            .find(|file| file.ino() == mapping.inode)
            .or_else(|| names().filter_map(regular).find(|file| is_exactly(file, mapping)))
            .map(|file| FileState::from(&file))
            .ok_or_else(|| refused(error))?,
    };
    let leads_there = |path: &PathBuf| regular(path).is_some_and(|file| ObjectId::from(&file) == state.id);
    let path = names().map(Path::to_owned).chain(names().map(rooted)).find(leads_there).unwrap_or(mapped);
    Ok(Object { state, path, display_path: mapping.path.clone(), held: None })
}

/// Whether this is the mapped file, for a path outside of the target's root, where the inode alone is not enough.
fn is_exactly(file: &Metadata, mapping: &Mapping) -> bool {
    let device = (u64::from(mapping.device.0), u64::from(mapping.device.1));
    file.ino() == mapping.inode && (major(file.dev()), minor(file.dev())) == device
}

fn refused(error: &io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::NotPermitted,
        _ => OpenError::Gone(io::Error::from(error.kind())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Process 7 with one mapping, in a fake proc file system.
    struct Fake {
        dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Fake {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("container");
            std::fs::create_dir_all(root.join("opt")).unwrap();
            std::fs::create_dir_all(dir.path().join("proc/7/map_files")).unwrap();
            symlink(&root, dir.path().join("proc/7/root")).unwrap();
            Self { dir, root }
        }

        fn map(&self, lines: &[(u64, &str)]) {
            let line = |(at, (inode, path)): (usize, &(u64, &str))| {
                format!("{at}000-{at}800 r-xp 00000000 00:fff {inode} {path}\n")
            };
            let text: String = lines.iter().enumerate().map(line).collect();
            std::fs::write(self.dir.path().join("proc/7/maps"), text).unwrap();
        }

        fn objects(&self) -> Objects {
            Objects::mapped_by(&Processes::at(self.dir.path().join("proc")), 7).unwrap()
        }

        fn file(&self, name: &str) -> u64 {
            let path = self.root.join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::metadata(path).unwrap().ino()
        }
    }

    #[test]
    fn a_file_is_looked_up_once_while_it_is_mapped() {
        let fake = Fake::new();
        let processes = Processes::at(fake.dir.path().join("proc"));
        let mut known = KnownMappings::default();
        let mut mapped = || Objects::mapped_since(&processes, 7, &mut known).unwrap().objects;
        let one = fake.file("opt/one.so");
        fake.map(&[(one, "/opt/one.so")]);
        let first = mapped();
        assert_eq!(first.len(), 1);
        let two = fake.file("opt/two.so");
        // Its path is not looked at any more.
        std::fs::remove_file(fake.root.join("opt/one.so")).unwrap();
        fake.map(&[(one, "/opt/one.so"), (two, "/opt/two.so")]);
        let both = mapped();
        assert_eq!((both.len(), &both[0]), (2, &first[0]));
        // Another mapping is another file.
        fake.map(&[(two, "/opt/two.so"), (one, "/opt/one.so")]);
        assert_eq!(mapped().len(), 1);
    }

    #[test]
    fn a_file_that_is_written_to_has_another_state() {
        let fake = Fake::new();
        let processes = Processes::at(fake.dir.path().join("proc"));
        let mut known = KnownMappings::default();
        let mut mapped = || Objects::mapped_since(&processes, 7, &mut known).unwrap().objects.remove(0);
        let file = fake.file("opt/one.so");
        fake.map(&[(file, "/opt/one.so")]);
        let first = mapped();
        assert_eq!(mapped(), first);
        std::fs::write(fake.root.join("opt/one.so"), "another content").unwrap();
        let second = mapped();
        assert_eq!(second.id(), first.id());
        assert_ne!(second.state, first.state);
        // Another file in its place does not change the state of this one.
        std::fs::write(fake.root.join("opt/two.so"), "a third content").unwrap();
        std::fs::rename(fake.root.join("opt/two.so"), fake.root.join("opt/one.so")).unwrap();
        assert_eq!(mapped(), second);
    }

    #[test]
    fn a_file_in_another_mount_namespace() {
        let fake = Fake::new();
        let inode = fake.file("opt/lib one.so");
        fake.map(&[
            (inode, "/opt/lib one.so"),
            (inode, "/opt/lib one.so"),
            (inode + 1000, "/opt/lib one.so"),
        ]);
        let found = fake.objects();
        assert_eq!(found.objects.len(), 1);
        assert_eq!(found.objects[0].path, fake.dir.path().join("proc/7/root/opt/lib one.so"));
        assert_eq!(found.objects[0].display_path, Path::new("/opt/lib one.so"));
        assert_eq!(found.failed.len(), 1, "another inode is another file: {found:?}");
    }

    #[test]
    fn a_replaced_file_is_found_as_it_is_mapped() {
        let fake = Fake::new();
        let old = fake.file("opt/old.so");
        fake.file("opt/lib.so");
        fake.map(&[(old, "/opt/lib.so (deleted)")]);
        assert!(fake.objects().objects.is_empty());
        let mapped = fake.dir.path().join("proc/7/map_files/0-800");
        symlink(fake.root.join("opt/old.so"), &mapped).unwrap();
        assert_eq!(fake.objects().objects[0].path, mapped);
    }

    #[test]
    fn a_file_whose_name_ends_so() {
        let fake = Fake::new();
        let inode = fake.file("opt/lib (deleted)");
        fake.map(&[(inode, "/opt/lib (deleted)")]);
        assert_eq!(fake.objects().objects[0].path, fake.dir.path().join("proc/7/root/opt/lib (deleted)"));
    }

    #[test]
    fn two_names_of_one_file() {
        let fake = Fake::new();
        let inode = fake.file("opt/a.so");
        std::fs::hard_link(fake.root.join("opt/a.so"), fake.root.join("opt/b.so")).unwrap();
        fake.map(&[(inode, "/opt/a.so"), (inode, "/opt/b.so")]);
        assert_eq!(fake.objects().objects.len(), 1);
    }

    #[test]
    fn our_own_program_comes_by_its_plain_path() {
        let exe = std::env::current_exe().unwrap();
        let found = Objects::mapped_by(&Processes::default(), std::process::id()).unwrap();
        let ours = found.objects.iter().find(|object| object.display_path == exe).unwrap();
        assert_eq!(ours.path, exe);
        assert_eq!(ours.state, Object::at(&exe).unwrap().state);
        assert!(found.objects.len() > 1 || cfg!(target_feature = "crt-static"));
    }

    #[test]
    fn a_running_program_that_was_deleted() {
        struct Stop(Child);
        impl Drop for Stop {
            fn drop(&mut self) {
                let _ = self.0.kill();
                let _ = self.0.wait();
            }
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("wait.c"), "#include <unistd.h>\nint main(void) { pause(); }")
            .unwrap();
        let program = dir.path().join("wait");
        let cc = Command::new("cc").arg("-o").arg(&program).arg(dir.path().join("wait.c")).status().unwrap();
        assert!(cc.success());
        let id = Object::at(&program).unwrap().id();
        let child = Stop(Command::new(&program).stdin(Stdio::null()).spawn().unwrap());
        // The parent continues as soon as the child has left our memory, before it has mapped its program.
        let mapped = || !Objects::mapped_by(&Processes::default(), child.0.id()).unwrap().objects.is_empty();
        while !mapped() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, "something else").unwrap();
        let found = Objects::mapped_by(&Processes::default(), child.0.id()).unwrap();
        let name = format!("{} (deleted)", program.display());
        if let Some(object) = found.objects.iter().find(|object| object.display_path == Path::new(&name)) {
            assert_eq!(object.id(), id);
            assert!(std::fs::read(&object.path).unwrap().starts_with(b"\x7fELF"));
        } else {
            assert!(
                found.failed.iter().any(|failed| matches!(failed.reason, OpenError::NotPermitted)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn no_such_process_and_no_such_library() {
        let dir = tempfile::tempdir().unwrap();
        let error = Objects::mapped_by(&Processes::at(dir.path()), 5).unwrap_err();
        assert!(matches!(error, ProcessError::NoSuchProcess { pid: 5 }));
        assert!(matches!(Object::at(dir.path()), Err(OpenError::NotAFile)));
        assert!(matches!(Object::at(&dir.path().join("none")), Err(OpenError::Io(_))));
    }
}
