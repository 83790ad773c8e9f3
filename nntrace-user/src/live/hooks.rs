//! Hooks: the library that has operators of engines marked inside of the commands that we start, and the folder of the plans
//! that it works by.
//!
//! ```text
//!  engine_probes (map, file) ─► plan: functions, and the words that lead to them ─► a file in the folder
//!  LD_PRELOAD ─► the library, in the command and its children ─► reads the plan when the engine is loaded ─► lanes
//! ```
//!
//! The library is compiled from `nntrace-common/hooks`; `docs/hooks.md` describes both sides.

mod leftovers;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    sys::statvfs::{FsFlags, statvfs},
    unistd::Uid,
};
use tempfile::TempDir;
use thiserror::Error;

use super::{
    target::{self, FileState, ObjectId, exports},
    target_library,
};
use crate::caller::RunAs;

/// File name of the library.
const LIBRARY: &str = "libnntrace-hooks.so";
/// Symbol that only this library exports.
const SYMBOL: &str = "nntrace_hooks_library";
/// First part of the name of a run's folder.
const PREFIX: &str = "nntrace-hooks-";
/// Name of the plans' folder, in that of the run, beside the library.
const PLANS: &str = "plans";
/// Names of files beside the plans: one with the profiler's process id, and one that is there while files are being examined.
const PROFILER: &str = "profiler";
const BUSY: &str = "busy";
/// Name of the file that is locked while the run lasts, and that only its owner can open.
const LOCK: &str = "lock";
/// Variable by which the loader finds libraries to load before a program.
const PRELOAD: &str = "LD_PRELOAD";
/// Folders that are tried for the copy by root.
const OF_ROOT: [&str; 4] = ["/var/lib", "/usr/local/lib", "/opt", "/run"];

/// Reason why nothing can be hooked.
#[derive(Debug, Error)]
pub enum HookError {
    /// The library is not there.
    #[error("{LIBRARY} is neither beside nntrace-bpf nor in ../lib/nntrace-bpf (the whole package has it)")]
    NoLibrary,
    /// No folder takes the copy.
    #[error(
        "hooks need a folder that only its user can write to, on a file system mounted without noexec ({reason}; tried {})",
        .tried.join(", ")
    )]
    NoFolder {
        /// Folders that were tried.
        tried: Vec<String>,
        /// Reason of the last one.
        reason: io::Error,
    },
    /// The user of the command may not read the copy.
    #[error("{} cannot be read by {user} ({reason})", .library.display())]
    Unreadable {
        /// Path of the copy.
        library: PathBuf,
        /// User that the command runs as.
        user: String,
        /// Reason.
        reason: io::Error,
    },
    /// Nothing can be preloaded into the command's program, or it would not run.
    #[error("{0}")]
    Program(String),
}

/// The library and the plans of one run; the files are removed with the last copy of this.
///
/// Each run has a copy of the library of its own. Lanes are offered by a counter in it, which the kernel raises for all processes that
/// map the file, so only processes that this run has started count.
#[derive(Clone, Debug)]
pub struct Hooks(Arc<Files>);

#[derive(Debug)]
struct Files {
    folder: TempDir,
    library: PathBuf,
    id: ObjectId,
    /// Folder of the plans, locked: the library waits for plans only while the lock is held.
    plans: PathBuf,
    _locks: [File; 2],
    /// Whether the library stays when the run ends.
    is_kept: AtomicBool,
}

impl Hooks {
    /// Prepares a run of this command as `user`, by default as ourselves.
    ///
    /// # Errors
    /// When nothing can be preloaded into the command's program, the library is missing, no folder takes its copy, or the user
    /// may not read it.
    pub fn prepare(command: &OsStr, user: Option<&RunAs>) -> Result<Self, HookError> {
        if let Some(reason) = target::obstacle_to_preloading(command) {
            return Err(HookError::Program(reason));
        }
        Self::of_user(user)
    }

    /// Prepares a run of any program as `user`.
    ///
    /// # Errors
    /// When the library is missing, no folder takes its copy, or the user may not read it.
    pub(super) fn of_user(user: Option<&RunAs>) -> Result<Self, HookError> {
        let source = target_library::find(LIBRARY).ok_or(HookError::NoLibrary)?;
        let parents = parents();
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        let mut create = |parent: &PathBuf| Files::create(parent, &source).map_err(|error| last = error).ok();
        let made = parents.iter().find_map(&mut create);
        let tried = || parents.iter().map(|parent| parent.display().to_string()).collect();
        let files = made.ok_or_else(|| HookError::NoFolder { tried: tried(), reason: last })?;
        match target_library::check_readable(&files.library, user) {
            Ok(()) => Ok(Self(Arc::new(files))),
            Err((user, reason)) => {
                Err(HookError::Unreadable { library: files.library.clone(), user, reason })
            }
        }
    }

    /// Returns the variable of the command: the library comes after what is preloaded already.
    #[must_use]
    pub fn variable(&self) -> (OsString, OsString) {
        let mut preload = env::var_os(PRELOAD).unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(self.library());
        (PRELOAD.into(), preload)
    }

    /// Folder of this run's copy of the library, and of the plans.
    pub(super) fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    /// Path of this run's copy of the library.
    pub(super) fn library(&self) -> &Path {
        &self.0.library
    }

    /// Identity of that copy.
    pub(super) fn id(&self) -> ObjectId {
        self.0.id
    }

    /// Whether a process that begins with this environment loads the library.
    pub(super) fn is_in(&self, environment: &[u8]) -> bool {
        let library = self.library().as_os_str().as_bytes();
        let mut entries = environment.split(|&byte| byte == 0);
        let preloaded = entries.find_map(|entry| entry.strip_prefix(PRELOAD.as_bytes())?.strip_prefix(b"="));
        preloaded.unwrap_or_default().split(|byte| b": ".contains(byte)).any(|path| path == library)
    }

    /// Announces that a file is being examined: processes that have loaded it wait longer for its plan.
    pub(super) fn announce_plan(&self, file: FileState) {
        if let Err(error) = self.prepare_plan(file, "") {
            log::info!("cannot write a plan: {error}");
        }
    }

    /// Writes the plan for a file, which nobody reads before it is published.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn prepare_plan(&self, file: FileState, text: &str) -> io::Result<()> {
        let new = self.unpublished(file);
        fs::write(&new, text)?;
        fs::set_permissions(&new, Permissions::from_mode(0o644))
    }

    /// Publishes the plan for a file, an empty one if none was written: processes that wait for it go on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn publish(&self, file: FileState) -> io::Result<()> {
        let new = self.unpublished(file);
        if !new.exists() {
            self.prepare_plan(file, "")?;
        }
        fs::rename(new, self.0.plans.join(plan_name(file)))
    }

    /// Removes the plan for a file in an earlier state.
    pub(super) fn remove_plan(&self, file: FileState) {
        // What cannot be removed now is removed with the folder.
        let _ = fs::remove_file(self.0.plans.join(plan_name(file)));
    }

    fn unpublished(&self, file: FileState) -> PathBuf {
        self.0.plans.join(plan_name(file)).with_extension("new")
    }

    /// Sets whether files are being examined: processes that have loaded others wait longer, too.
    pub(super) fn set_busy(&self, is_busy: bool) {
        let path = self.0.plans.join(BUSY);
        // Without it the library waits for a shorter time.
        let _ = if is_busy { File::create(path).map(drop) } else { fs::remove_file(path) };
    }

    /// Removes all plans: no process waits for one after that.
    pub(super) fn remove_plans(&self) {
        // What cannot be removed now is removed with the folder.
        let _ = fs::remove_dir_all(&self.0.plans);
    }

    /// Keeps the library after the run: without it, the loader complains in each program that a process of the run executes
    /// later. A later run removes it.
    pub(super) fn keep_library(&self) {
        self.0.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let is_kept = *self.is_kept.get_mut();
        self.folder.disable_cleanup(is_kept);
        if is_kept {
            let _ = fs::remove_dir_all(&self.plans);
        }
    }
}

/// Returns the folders that are tried for the copy. Only their owner may write to them: processes that outlive the run keep
/// the path in their environment, and nobody else may put a library there. Under sudo the variables are those of another user.
fn parents() -> Vec<PathBuf> {
    if Uid::effective().is_root() {
        return OF_ROOT.map(PathBuf::from).to_vec();
    }
    let of = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = of("HOME");
    of("XDG_RUNTIME_DIR")
        .into_iter()
        .chain(home.as_ref().map(|home| home.join(".cache")))
        .chain(home.clone())
        .collect()
}

impl Files {
    fn create(parent: &Path, source: &Path) -> io::Result<Self> {
        // The loader splits the variable at the first two, and replaces what begins with the last.
        if parent.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
            return Err(io::Error::other(format!("LD_PRELOAD cannot name a file in {}", parent.display())));
        }
        let metadata = fs::metadata(parent)?;
        let is_ours = [0, Uid::effective().as_raw()].contains(&metadata.uid());
        if !is_ours || metadata.mode() & 0o022 != 0 {
            return Err(io::Error::other(format!("others can write to {}", parent.display())));
        }
        if statvfs(parent)?.flags().contains(FsFlags::ST_NOEXEC) {
            return Err(io::Error::other(format!("{} is mounted with noexec", parent.display())));
        }
        leftovers::remove(parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(parent)?;
        // Independent of our umask.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let library = folder.path().join(LIBRARY);
        io::copy(&mut File::open(source)?, &mut File::create_new(&library)?)?;
        fs::set_permissions(&library, Permissions::from_mode(0o755))?;
        let id = ObjectId::from(&fs::metadata(&library)?);
        let plans = folder.path().join(PLANS);
        fs::create_dir(&plans)?;
        fs::set_permissions(&plans, Permissions::from_mode(0o755))?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create_new(true).mode(0o600).open(folder.path().join(LOCK))?;
        let locks = [lock, File::open(&plans)?];
        for lock in &locks {
            lock.try_lock().map_err(io::Error::from)?;
        }
        let profiler = plans.join(PROFILER);
        fs::write(&profiler, process::id().to_string())?;
        fs::set_permissions(&profiler, Permissions::from_mode(0o644))?;
        Ok(Self { folder, library, id, plans, _locks: locks, is_kept: AtomicBool::new(false) })
    }
}

/// Returns the name of a file's plan in the folder of the plans: nntrace-common/hooks/plan.c. The plan of an earlier content has
/// another name.
fn plan_name(FileState { id, size, changed: (seconds, nanoseconds) }: FileState) -> String {
    format!("{:x}-{:x}-{size:x}-{seconds:x}-{nanoseconds:x}", id.device, id.inode)
}

/// Whether a file is the library, whatever its name. One that cannot be read is not.
pub(super) fn is_library(path: &Path) -> bool {
    exports(path, SYMBOL).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with any file for the library, in a folder that is removed with it.
    fn hooks() -> (Hooks, TempDir) {
        let parent = tempfile::tempdir().unwrap();
        let files = Files::create(parent.path(), &env::current_exe().unwrap());
        (Hooks(Arc::new(files.unwrap())), parent)
    }

    #[test]
    fn others_may_not_write_beside_the_library() {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), Permissions::from_mode(0o1777)).unwrap();
        let error = Files::create(parent.path(), &env::current_exe().unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("others can write to"), "{error}");
        assert!(!parents().contains(&PathBuf::from("/tmp")));
    }

    #[test]
    fn a_process_has_the_library_that_its_environment_names() {
        let (hooks, _parent) = hooks();
        let library = hooks.library().to_str().unwrap();
        let of = |preload: &str| format!("A=b\0LD_PRELOAD={preload}\0").into_bytes();
        assert!(hooks.is_in(&of(library)) && hooks.is_in(&of(&format!("/lib/other.so:{library}"))));
        assert!(!hooks.is_in(&of("/lib/other.so")));
        assert!(!hooks.is_in(b"") && !is_library(hooks.library()));
    }

    #[test]
    fn plans_are_readable_by_all_once_they_are_published_and_removed_at_the_end() {
        let (hooks, _parent) = hooks();
        let folder = hooks.0.folder.path().to_owned();
        let file = |inode| FileState { id: ObjectId { device: 0x1f, inode }, size: 32, changed: (-1, 10) };
        let plan = folder.join("plans/1f-7-20-ffffffffffffffff-a");
        hooks.prepare_plan(file(7), "text").unwrap();
        assert!(!plan.exists());
        hooks.publish(file(7)).unwrap();
        assert_eq!(fs::read_to_string(&plan).unwrap(), "text");
        assert_eq!(fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o644);
        // A file in which nothing is to be hooked.
        hooks.publish(file(8)).unwrap();
        let empty = folder.join("plans/1f-8-20-ffffffffffffffff-a");
        assert_eq!(fs::read(empty).unwrap(), b"");
        drop(hooks);
        assert!(!folder.exists());
    }

    #[test]
    fn the_library_of_processes_that_live_on_is_kept() {
        let (hooks, _parent) = hooks();
        let (library, plans) = (hooks.library().to_owned(), hooks.0.plans.clone());
        let other = File::open(&plans).unwrap();
        assert!(other.try_lock_shared().is_err(), "the run holds no lock");
        hooks.keep_library();
        drop(hooks);
        assert!(library.exists() && !plans.exists());
    }
}
