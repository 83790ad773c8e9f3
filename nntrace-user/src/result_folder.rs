//! A folder of results: in its place only when it is worth replacing what was there.
//!
//! Files are created in an unfinished folder, through its descriptor, and never over another file. The unfinished folder is
//! beside the place, or inside of a folder that exists there: [`ResultFolder::settle`] puts it in place by renaming. Until
//! then nothing that was there before is touched; dropped before, the unfinished folder is removed.

mod directory;
mod error;
#[cfg(test)]
mod tests;
mod unfinished;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

pub use directory::Directory;
pub use error::FolderError;
use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, Uid, faccessat, setfsuid},
};
use unfinished::UNFINISHED;
pub use unfinished::{Unfinished, remove_all as remove_unfinished};

use crate::caller::FileRights;

/// End of the name of a file whose next content is being written.
pub const PART: &str = ".part";

/// Kind of results that a folder holds.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Whether a file of this name is part of such results, and may be replaced with them.
    pub is_part: fn(&OsStr) -> bool,
    /// File by which such results are recognized: the last one that is put in place.
    pub last: Option<&'static str>,
}

/// Folder of results that is being written.
#[derive(Debug)]
pub struct ResultFolder {
    /// As the user wrote it.
    place: PathBuf,
    kind: Kind,
    /// Folder in which files are created.
    folder: Directory,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Folder beside the place, where nothing is yet.
    Beside(Unfinished),
    /// Folder inside of the one in the place.
    Inside(Unfinished, Directory),
    /// Folder in its place.
    Settled,
}

impl ResultFolder {
    /// Checks that such a folder can be created, and changes nothing. One that exists has to be empty, or, with `force`, to hold
    /// results of this kind and nothing else.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(place: &Path, kind: Kind, force: bool) -> Result<(), FolderError> {
        let _rights = FileRights::of_caller().map_err(|source| FolderError::write(place, source))?;
        open_place(place, kind, force).map(drop)
    }

    /// Creates the unfinished folder.
    ///
    /// # Errors
    /// As of [`ResultFolder::check`], and when it cannot be created.
    pub fn create(place: &Path, kind: Kind, force: bool) -> Result<Self, FolderError> {
        let error = |source| FolderError::write(place, source);
        let _rights = FileRights::of_caller().map_err(error)?;
        let inside = open_place(place, kind, force)?;
        let around = match &inside {
            Some(inside) => inside.clone(),
            None => Directory::open(folder_of(place)).map_err(error)?,
        };
        let unfinished = Unfinished::create_folder(&around).map_err(error)?;
        let folder = around.open_folder(unfinished.name()).map_err(error)?;
        let state = match inside {
            Some(inside) => State::Inside(unfinished, inside),
            None => State::Beside(unfinished),
        };
        Ok(Self { place: place.to_owned(), kind, folder, state })
    }

    /// Returns the place, as the user wrote it.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Returns the path of the folder in which files are now, for code that opens files by path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.state {
            State::Beside(_) | State::Inside(..) => self.folder.path(),
            State::Settled => &self.place,
        }
    }

    /// Creates a file that does not exist yet.
    ///
    /// # Errors
    /// When it exists, even as a link, or cannot be created.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let _rights = FileRights::of_caller()?;
        self.folder.create_file(name.as_ref())
    }

    /// Whether there is a file of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        FileRights::of_caller().is_ok_and(|_rights| self.folder.has(name.as_ref()))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        let _rights = FileRights::of_caller()?;
        self.folder.remove_file(name.as_ref())
    }

    /// Gives a file another content: it has the one or the other at any time.
    ///
    /// # Errors
    /// When it cannot be written. It is unchanged then.
    pub fn replace_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let _rights = FileRights::of_caller()?;
        let part = format!("{name}{PART}");
        match self.remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.create_file(&part)?.write_all(content)?;
        self.folder.rename(part.as_ref(), &self.folder, name.as_ref())
    }

    /// Puts the folder, as it is now, in its place, and removes the results that were there. Files that are created later are
    /// created there.
    ///
    /// # Errors
    /// When the place was taken meanwhile, or cannot be written.
    pub fn settle(&mut self) -> Result<(), FolderError> {
        let _rights = FileRights::of_caller().map_err(|source| FolderError::write(&self.place, source))?;
        match std::mem::replace(&mut self.state, State::Settled) {
            State::Beside(unfinished) => {
                let around = unfinished.around();
                let place = self.place.file_name().unwrap_or_default();
                // An empty folder that came into the place is replaced, anything else refused.
                if let Err(source) = around.rename(unfinished.name(), around, place) {
                    return Err(match Errno::from_raw(source.raw_os_error().unwrap_or_default()) {
                        Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR => {
                            FolderError::Exists(self.place.clone())
                        }
                        _ => FolderError::write(&self.place, source),
                    });
                }
                unfinished.forget();
                Ok(())
            }
            State::Inside(_unfinished, outer) => {
                let moved = self.move_into(&outer);
                moved.map_err(|source| FolderError::write(&self.place, source))?;
                self.folder = outer;
                Ok(())
            }
            State::Settled => Ok(()),
        }
    }

    /// Moves everything to the folder in the place, and removes the old results from it.
    fn move_into(&self, to: &Directory) -> io::Result<()> {
        let is_last = |name: &OsString| self.kind.last.is_some_and(|last| name == last);
        let mut new = self.folder.names()?;
        new.sort_by_key(is_last);
        let old = to.names()?;
        let is_old = |name: &&OsString| (self.kind.is_part)(name) && !new.contains(*name);
        let gone: Vec<&OsString> = old.iter().filter(is_old).collect();
        let (last, others) = new.split_at(new.partition_point(|name| !is_last(name)));
        let move_all = |names: &[OsString]| -> io::Result<()> {
            names.iter().try_for_each(|name| self.folder.rename(name, to, name))
        };
        // Half of the old results must not be recognized as results.
        let (old_last, old_others): (Vec<&OsString>, Vec<&OsString>) =
            gone.into_iter().partition(|name| is_last(name));
        old_last.into_iter().chain(old_others).try_for_each(|name| to.remove_file(name))?;
        move_all(others)?;
        move_all(last)
    }
}

/// Opens the folder in the place, if there is one already, into which the results may go.
fn open_place(place: &Path, kind: Kind, force: bool) -> Result<Option<Directory>, FolderError> {
    if !exists(place, kind, force)? {
        return Ok(None);
    }
    let opened = Directory::open(place).and_then(|folder| {
        check_owner(&folder.metadata()?)?;
        Ok(Some(folder))
    });
    opened.map_err(|source| FolderError::write(place, source))
}

/// Whether there is a folder in the place already, into which the results may go.
fn exists(place: &Path, kind: Kind, force: bool) -> Result<bool, FolderError> {
    let error = |source| FolderError::write(place, source);
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        // A link to nowhere is in the place, too.
        Err(source) if source.kind() == ErrorKind::NotFound && place.symlink_metadata().is_err() => {
            let folder = folder_of(place);
            // Its last word may be `..`, or there may be none, as in `/`.
            if place.file_name().is_none() {
                return Err(error(io::Error::other("this is not a name of a folder")));
            }
            check_writable(folder).map_err(|source| FolderError::write(folder, source))?;
            return Ok(false);
        }
        Err(source) if source.kind() == ErrorKind::PermissionDenied => return Err(error(source)),
        Err(_) => return Err(FolderError::Exists(place.to_owned())),
    };
    let mut has_results = false;
    for entry in entries {
        let entry = entry.map_err(error)?;
        let name = entry.file_name();
        if is_unfinished(&name) {
            continue;
        }
        let is_part = (kind.is_part)(&name) && !entry.file_type().map_err(error)?.is_dir();
        match (is_part, force) {
            (true, _) => has_results = true,
            (false, true) => return Err(FolderError::Foreign { path: place.to_owned(), name }),
            (false, false) => return Err(FolderError::Exists(place.to_owned())),
        }
    }
    if has_results && !force {
        return Err(FolderError::Replaceable(place.to_owned()));
    }
    check_writable(place).map_err(error)?;
    Ok(true)
}

fn is_unfinished(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(UNFINISHED)
}

/// Checks that files can be created in a folder.
fn check_writable(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(Errno::ENOTDIR.into());
    }
    // As the user for files: `access` would ask for the one who started us.
    Ok(faccessat(AT_FDCWD, folder, AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS)?)
}

/// Checks that nobody else may do with a folder what he likes.
fn check_owner(folder: &Metadata) -> io::Result<()> {
    // An id that cannot be is refused, and the one in force returned.
    let own = setfsuid(Uid::from_raw(u32::MAX));
    if folder.uid() == own.as_raw() {
        return Ok(());
    }
    let text = format!(
        "it belongs to user {}, who could replace what is in it: name a folder that does not exist yet",
        folder.uid()
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// Returns the folder that a path is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
