//! Folders of hooks that runs have left: those that were killed, and those whose command left processes that may still execute
//! programs with the library in their environment.

use std::{
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use memchr::memmem;
use nix::unistd::Uid;

use super::{LOCK, PREFIX};

/// Age from which on a folder belongs to no run that is about to start.
const OLD: Duration = Duration::from_mins(1);

/// Removes folders in `parent` that nobody uses any more.
pub(super) fn remove(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        if is_ours && is_unused(&path).unwrap_or(false) {
            log::info!("removing {}, which an earlier run has left", path.display());
            if let Err(error) = fs::remove_dir_all(&path) {
                log::info!("{} cannot be removed: {error}", path.display());
            }
        }
    }
}

/// Whether a folder is nobody's any more: it is old, no run holds its lock, and no process that we can see names it.
fn is_unused(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age >= OLD);
    if !metadata.is_dir() || metadata.uid() != Uid::effective().as_raw() || !is_old {
        return Ok(false);
    }
    let is_locked = match File::open(path.join(LOCK)) {
        Ok(lock) => lock.try_lock_shared().is_err(),
        // It was killed before it had made it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    Ok(!is_locked && !is_used(path.as_os_str().as_bytes()))
}

/// Whether any process has a path in its environment, or maps a file in it: a process may write over its environment.
fn is_used(path: &[u8]) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names_it = |file: PathBuf| fs::read(file).is_ok_and(|text| memmem::find(&text, path).is_some());
    processes
        .map(|process| process.path())
        .any(|process| names_it(process.join("environ")) || names_it(process.join("maps")))
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Child, Command},
        time::SystemTime,
    };

    use super::*;

    /// A folder as a run leaves it: of this age, with a lock or without.
    fn left(parent: &Path, name: &str, age: Duration, has_lock: bool) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).unwrap();
        if has_lock {
            fs::write(folder.join(LOCK), "").unwrap();
        }
        File::open(&folder).unwrap().set_modified(SystemTime::now() - age).unwrap();
        folder
    }

    /// Process that is ended with the test.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn folders_go_that_nobody_uses() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let hour = Duration::from_hours(1);
        let of_killed = left(parent, "nntrace-hooks-a", hour, true);
        let of_ended = left(parent, "nntrace-hooks-b", hour, false);
        let new = left(parent, "nntrace-hooks-c", Duration::ZERO, false);
        let other = left(parent, "other", hour, false);
        let locked = left(parent, "nntrace-hooks-d", hour, true);
        let lock = File::open(locked.join(LOCK)).unwrap();
        lock.lock().unwrap();
        let named = left(parent, "nntrace-hooks-e", hour, false);
        // A process that has written over its environment still maps the library.
        let mapped = left(parent, "nntrace-hooks-f", hour, false);
        let program = mapped.join("sleep");
        fs::copy("/bin/sleep", &program).unwrap();
        File::open(&mapped).unwrap().set_modified(SystemTime::now() - hour).unwrap();
        let running = Sleeper(Command::new(&program).arg("60").env_clear().spawn().unwrap());
        let mut sleep = Command::new("sleep");
        let library = named.join("library");
        let sleeper = Sleeper(sleep.arg("60").env("NNTRACE_TEST", &library).spawn().unwrap());
        remove(parent);
        assert!(!of_killed.exists() && !of_ended.exists());
        assert!([new, other].iter().chain([&locked, &named, &mapped]).all(|folder| folder.exists()));
        drop((lock, sleeper, running));
        remove(parent);
        assert!(![locked, named, mapped].iter().any(|folder| folder.exists()));
    }
}
