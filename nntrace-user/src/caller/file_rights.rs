//! Rights by which a thread opens, creates and removes files.

use std::{cell::Cell, fs::File, io, marker::PhantomData, path::Path, sync::OnceLock};

use nix::{
    libc,
    unistd::{Gid, Uid, getgroups, setfsgid, setfsuid, setgroups, setresgid, setresuid},
};

use super::{
    RunAs,
    capabilities::{self, FILES, Sets},
};

thread_local! {
    /// How many [`FileRights`] there are in this thread: the first one sets the rights, the last one sets them back.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Rights of the user who asked for this run. As long as it lives, this thread opens, creates and removes files as he
/// may: under sudo, the user who called sudo.
#[derive(Debug)]
#[must_use = "the rights are set back when it is dropped"]
pub struct FileRights {
    before: Before,
    /// They are those of this thread.
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
enum Before {
    /// We are the user who asked, or another one set the rights.
    Same,
    /// Ids for files, and groups, before they were those of the user.
    User { uid: Uid, gid: Gid, groups: Vec<Gid> },
    /// Capabilities before those for files came into force, or out of force.
    Capabilities([Sets; 2]),
}

impl FileRights {
    /// Sets the rights.
    ///
    /// # Errors
    /// When it is unclear who called sudo, or the kernel refuses.
    pub fn of_caller() -> io::Result<Self> {
        let is_first = HELD.replace(HELD.get() + 1) == 0;
        // Dropped on errors, it sets back what was set.
        let mut rights = Self { before: Before::Same, not_send: PhantomData };
        if is_first {
            match caller()? {
                Some(user) if Uid::effective().is_root() => rights.lower_to(user)?,
                // What is left of the rights is the user's already, or root himself asked.
                _ => rights.set_capabilities()?,
            }
        }
        Ok(rights)
    }

    /// Takes the rights of a user. While the user for files is not root, the kernel takes the capabilities for files away
    /// too.
    fn lower_to(&mut self, user: &RunAs) -> io::Result<()> {
        let groups = getgroups()?;
        set_groups(&user.groups)?;
        let gid = setfsgid(user.gid);
        self.before = Before::User { uid: setfsuid(user.uid), gid, groups };
        // They return no error. An id that cannot be is refused, and the one in force returned.
        if (setfsuid(Uid::from_raw(u32::MAX)), setfsgid(Gid::from_raw(u32::MAX))) != (user.uid, user.gid) {
            return Err(io::Error::other(format!(
                "the kernel does not let us open files as {}",
                user.name()
            )));
        }
        Ok(())
    }

    /// Brings the capabilities for files into force where we are root, who kept them, and all out of force where they are the
    /// program's, and not those of its caller.
    fn set_capabilities(&mut self) -> io::Result<()> {
        let sets = capabilities::of_thread()?;
        let [low, high] = sets;
        let wanted = if is_program_privileged() {
            [Sets { effective: 0, ..low }, Sets { effective: 0, ..high }]
        } else if Uid::effective().is_root() {
            [Sets { effective: low.effective | low.permitted & FILES, ..low }, high]
        } else {
            sets
        };
        if wanted != sets {
            capabilities::set(wanted)?;
            self.before = Before::Capabilities(sets);
        }
        Ok(())
    }
}

impl Drop for FileRights {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        match &self.before {
            Before::Same => {}
            Before::User { uid, gid, groups } => {
                setfsuid(*uid);
                setfsgid(*gid);
                // A process that could change its groups can change them back.
                let _ = set_groups(groups);
            }
            Before::Capabilities(sets) => _ = capabilities::set(*sets),
        }
    }
}

/// Returns the user who called sudo; it is looked up once.
fn caller() -> io::Result<Option<&'static RunAs>> {
    static CALLER: OnceLock<Result<Option<RunAs>, String>> = OnceLock::new();
    let caller = CALLER.get_or_init(|| RunAs::sudo_caller().map_err(|error| error.to_string()));
    caller.as_ref().map(Option::as_ref).map_err(|text| io::Error::other(text.clone()))
}

/// Returns what a message on a file ends with under sudo: in whose name it was tried.
#[must_use]
pub fn as_whom() -> String {
    match caller() {
        Ok(Some(user)) => format!(" as {}, who called sudo", user.name()),
        _ => String::new(),
    }
}

/// Gives up for good whatever this process does not need to read and write files of the user who asked. It must have one
/// thread yet.
///
/// # Errors
/// As of [`FileRights::of_caller`].
pub fn keep_file_rights() -> io::Result<()> {
    if let Some(user) = caller()? {
        setgroups(&user.groups)?;
        setresgid(user.gid, user.gid, user.gid)?;
        // Of another user than root, this gives up all capabilities.
        setresuid(user.uid, user.uid, user.uid)?;
    } else if Uid::effective().is_root() {
        return capabilities::drop_all_but_files();
    }
    drop_those_of_program()
}

/// Whether the program has privileges that its caller has not, as after `setcap`. Source: the kernel's `AT_SECURE`.
#[must_use]
pub fn is_program_privileged() -> bool {
    // SAFETY: it takes a number and returns one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the user and the group who may trace only what they may trace without this program; `None` where the privileges
/// are their own.
#[must_use]
pub(crate) fn confined() -> Option<(Uid, Gid)> {
    is_program_privileged().then(|| (Uid::current(), Gid::current()))
}

/// Checks that the user who asked may trace a process, by the kernel's own rule: same user, or privileges of his own.
///
/// # Errors
/// When he may not.
pub(crate) fn may_trace(folder_in_proc: &Path) -> io::Result<()> {
    if !is_program_privileged() {
        return Ok(());
    }
    // The kernel opens it for those who may read the memory of the process. Source: fs/proc/base.c, `auxv_open`.
    open(&folder_in_proc.join("auxv")).map(drop)
}

/// Gives up the capabilities of this thread for good where they are the program's, as after `setcap`, and not those of its
/// caller.
///
/// # Errors
/// As of [`capabilities::drop_all`].
pub fn drop_those_of_program() -> io::Result<()> {
    if Uid::effective().is_root() { Ok(()) } else { capabilities::drop_all() }
}

/// Opens a file to read it, as the user who asked for this run.
///
/// # Errors
/// As of [`FileRights::of_caller`] and [`File::open`].
pub fn open(path: &Path) -> io::Result<File> {
    let _rights = FileRights::of_caller()?;
    File::open(path)
}

/// Sets the groups of the calling thread: the function of the C library would set those of all threads.
fn set_groups(groups: &[Gid]) -> io::Result<()> {
    // SAFETY: setgroups reads the numbers of the slice, which lives until it returns; `Gid` is one number.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn in_force() -> (Uid, Gid, Vec<Gid>) {
        let (uid, gid) = (setfsuid(Uid::from_raw(u32::MAX)), setfsgid(Gid::from_raw(u32::MAX)));
        (uid, gid, getgroups().unwrap())
    }

    #[test]
    fn a_thread_has_the_rights_of_a_user_and_then_its_own_again() {
        if !Uid::effective().is_root() {
            return;
        }
        let user = RunAs::user(Uid::from_raw(3_999_999), Some(Gid::from_raw(3_999_998))).unwrap();
        let before = in_force();
        HELD.set(1);
        let mut rights = FileRights { before: Before::Same, not_send: PhantomData };
        rights.lower_to(&user).unwrap();
        let lowered = in_force();
        let of_other = thread::spawn(in_force).join().unwrap();
        let inner = FileRights::of_caller().unwrap();
        drop(inner);
        let still = in_force();
        drop(rights);
        assert_eq!(lowered, (user.uid, user.gid, user.groups.clone()));
        assert_eq!(of_other, lowered, "a new thread begins with the rights of the one that creates it");
        assert_eq!(still, lowered);
        assert_eq!(in_force(), before);
        assert_eq!(HELD.get(), 0);
    }

    #[test]
    fn root_has_capabilities_for_files_only_while_he_uses_them() {
        if !Uid::effective().is_root() {
            return;
        }
        thread::spawn(|| {
            let effective = || capabilities::of_thread().unwrap().map(|sets| sets.effective);
            capabilities::drop_all_but_files().unwrap();
            assert_eq!(effective(), [0, 0]);
            HELD.set(1);
            let mut rights = FileRights { before: Before::Same, not_send: PhantomData };
            rights.set_capabilities().unwrap();
            assert_eq!(effective(), [FILES, 0]);
            drop(rights);
            assert_eq!(effective(), [0, 0]);
        })
        .join()
        .unwrap();
    }
}
