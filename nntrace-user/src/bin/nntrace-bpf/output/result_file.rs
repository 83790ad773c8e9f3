//! A file of results: known to be possible before anything runs, and in its place only when it is whole.
//!
//! An existing file stays as it is until the new content is written to the last byte, to a file without a name in
//! the same folder; a rename then puts one in the place of the other. A run that fails, or that is killed, leaves the
//! folder as it was.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Seek as _, Write as _},
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::{
            ffi::OsStrExt as _,
            fs::{MetadataExt as _, PermissionsExt as _, fchown},
        },
    },
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use nix::libc;
use nntrace_user::{
    caller::{self, FileRights},
    result_folder::{Directory, Unfinished as Registered, folder_of},
};

use super::{
    background_writer::BackgroundWriter,
    inputs,
    progress::{self, Shown},
};

/// Links that are followed before they are taken for a circle, as in the kernel.
const MOST_LINKS: usize = 40;

/// A file of results that can be written.
#[derive(Debug)]
pub struct ResultFile {
    /// As the user wrote it.
    name: PathBuf,
    place: Place,
}

/// Where bytes go.
#[derive(Debug)]
enum Place {
    /// A file that is not there yet.
    New(Entry),
    /// A regular file to be replaced.
    Old {
        /// Where it is.
        entry: Entry,
        /// It, open for writing.
        file: File,
        /// Whether its folder takes another file.
        beside: bool,
    },
    /// A device, a pipe, or a descriptor that we were started with: written as it is.
    Stream(File),
}

/// Name in a folder. The folder is open: what runs meanwhile cannot put another one in its place.
#[derive(Debug)]
struct Entry {
    folder: Directory,
    name: OsString,
}

/// A result that is written, but not yet in its place.
#[derive(Debug)]
pub struct Staged {
    file: ResultFile,
    content: Content,
    unfinished: Option<Unfinished>,
}

/// The content of a result, for places that it has to be copied to.
#[derive(Debug)]
enum Content {
    /// Content in memory.
    Bytes(Vec<u8>),
    /// Content in a file without a name, or in the one beside its place.
    File(File),
}

/// The content beside its place. Dropped, it is gone.
#[derive(Debug)]
enum Unfinished {
    /// A file that no name leads to: the kernel removes it, however we end.
    Nameless(File),
    /// Where the file system has none such: a file that we remove.
    Named(File, Registered),
}

impl ResultFile {
    /// Finds out whether the file can be written, and changes nothing. One that exists is replaced only by `force`;
    /// a named pipe is waited for until somebody reads it, as a shell does.
    ///
    /// # Errors
    /// When it exists already, or cannot be created or written.
    pub fn open(path: &Path, force: bool) -> Result<Self> {
        let cannot = || cannot_write(path);
        let _rights = FileRights::of_caller().with_context(cannot)?;
        if let Some(descriptor) = own_descriptor(path) {
            let stream = duplicate(descriptor).with_context(cannot)?;
            return Ok(Self { name: path.to_owned(), place: Place::Stream(stream) });
        }
        let place = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(anyhow!("it is a folder: name a file in it")).with_context(cannot);
            }
            Ok(found) if found.is_file() && !force => {
                bail!("{} exists already; --force replaces it", path.display())
            }
            Ok(_) => Place::existing(path, force).with_context(cannot)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Place::new(path).with_context(cannot)?,
            Err(error) => return Err(error).with_context(cannot),
        };
        Ok(Self { name: path.to_owned(), place })
    }

    /// Opens several, each with its kind.
    ///
    /// # Errors
    /// As of [`ResultFile::open`], and when two are one file.
    pub fn open_all<'a, K>(
        wanted: impl IntoIterator<Item = (K, &'a PathBuf)>,
        force: bool,
    ) -> Result<Vec<(K, Self)>> {
        let mut files: Vec<(K, Self)> = Vec::new();
        for (kind, path) in wanted {
            let file = Self::open(path, force)?;
            if let Some((_, same)) = files.iter().find(|(_, other)| other.is_same(&file)) {
                let (one, other) = (same.name().display(), path.display());
                bail!("{one} and {other} are the same file: each result needs one of its own");
            }
            files.push((kind, file));
        }
        Ok(files)
    }

    /// Whether both are one regular file, by whatever names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Place::New(entry), Place::New(other)) => entry.path() == other.path(),
            (Place::Old { file, .. }, Place::Old { file: other, .. }) => {
                let number = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
                number(file).is_some_and(|one| Some(one) == number(other))
            }
            _ => false,
        }
    }

    /// As the user named it.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the content, but not into its place yet: [`Staged::commit`] puts it there.
    ///
    /// # Errors
    /// When there is no room, or the folder has changed. What was there is unchanged then.
    pub fn stage(self, bytes: Vec<u8>) -> Result<Staged> {
        let cannot = || cannot_write(&self.name);
        let unfinished = self.unfinished().with_context(cannot)?;
        if let Some(unfinished) = &unfinished {
            let mut file = unfinished.file();
            file.write_all(&bytes).with_context(cannot)?;
            self.complete(file).with_context(cannot)?;
        }
        Ok(Staged { file: self, content: Content::Bytes(bytes), unfinished })
    }

    /// Writes content of any length as it is made, and shows how far it is, but does not put it into its place yet.
    ///
    /// # Errors
    /// As of [`ResultFile::stage`], and when it cannot be made.
    pub fn stage_streamed(
        self,
        write: impl FnOnce(&mut BackgroundWriter<Shown<File>>) -> Result<()>,
    ) -> Result<Staged> {
        let cannot = || cannot_write(&self.name);
        let unfinished = self.unfinished().with_context(cannot)?;
        let file = match &unfinished {
            Some(unfinished) => unfinished.file().try_clone(),
            None => tempfile::tempfile(),
        };
        let file = file.with_context(cannot)?;
        let shown = progress::shown(file.try_clone().with_context(cannot)?, "");
        let mut writer = BackgroundWriter::new(shown).with_context(cannot)?;
        write(&mut writer)?;
        drop(writer.finish().with_context(cannot)?);
        if unfinished.is_some() {
            self.complete(&file).with_context(cannot)?;
        }
        Ok(Staged { file: self, content: Content::File(file), unfinished })
    }

    /// Creates a file beside the place, if its folder takes one.
    fn unfinished(&self) -> io::Result<Option<Unfinished>> {
        let _rights = FileRights::of_caller()?;
        match &self.place {
            Place::New(entry) | Place::Old { entry, beside: true, .. } => {
                Unfinished::create_in(&entry.folder).map(Some)
            }
            Place::Old { beside: false, .. } | Place::Stream(_) => Ok(None),
        }
    }

    /// Completes a file beside the place: with the owner and mode of the old one, if there is one.
    fn complete(&self, file: &File) -> io::Result<()> {
        if let Place::Old { file: old, .. } = &self.place {
            let _rights = FileRights::of_caller()?;
            let old = old.metadata()?;
            // Who may not give files away makes it his own.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
            // Without set-user-ID and its like, which any writing takes away.
            file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        // Some file systems say only now that there was no room.
        file.sync_all()
    }
}

impl Content {
    /// Writes it to where it is to be.
    fn write_to(&mut self, out: &mut File) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::File(file) => {
                file.rewind()?;
                io::copy(file, out).map(drop)
            }
        }
    }
}

impl Place {
    /// Opens an existing file: one to be replaced, or one that is written as it is.
    fn existing(path: &Path, force: bool) -> Result<Self> {
        // By the kernel's own rules on who may write what, and follow which link.
        let file = OpenOptions::new().write(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(Self::Stream(file));
        }
        ensure!(force, "it exists already; --force replaces it");
        ensure!(!inputs::has(&file)?, "it is an input of this run: name another file");
        // Its own name, not that of a link to it: what a link leads to is replaced, and the link stays.
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let name = path.file_name().unwrap_or_default().to_owned();
        let entry = Entry { folder: Directory::open(folder_of(&path))?, name };
        let beside = match Unfinished::create_in(&entry.folder) {
            Ok(_) => true,
            Err(error)
                if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
            {
                false
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self::Old { entry, file, beside })
    }

    /// A file that is not there.
    fn new(path: &Path) -> Result<Self> {
        if let Ok(target) = fs::read_link(path) {
            bail!("it is a link to {}, which does not exist: name that file itself", target.display());
        }
        let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
        let name = name.context("this is no name of a file")?;
        let folder = folder_of(path);
        let folder = Directory::open(folder).map_err(|reason| {
            let name = folder.display();
            let text = format!("no folder {name}: {reason}; create it, or name a file in another one");
            Error::new(reason).context(text)
        })?;
        Unfinished::create_in(&folder)
            .with_context(|| format!("the folder {} takes no new file", folder.path().display()))?;
        Ok(Self::New(Entry { folder, name: name.to_owned() }))
    }
}

impl Staged {
    /// Puts the content into its place.
    ///
    /// # Errors
    /// When another file came into the place meanwhile (the content is kept beside then, and the error has its name),
    /// or when a device or pipe does not take it. A pipe whose reader went away is no error.
    pub fn commit(self) -> Result<()> {
        let Self { file: ResultFile { name, place }, mut content, unfinished } = self;
        let cannot = || cannot_write(&name);
        let _rights = FileRights::of_caller().with_context(cannot)?;
        match (place, unfinished) {
            (Place::New(Entry { folder, name: entry }), Some(unfinished)) => {
                let unfinished = unfinished.name_in(&folder).with_context(cannot)?;
                match folder.rename_to_new(unfinished.name(), &entry) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        let kept = unfinished.path();
                        unfinished.forget();
                        bail!(
                            "{} was created by another while this ran; the results are in {}",
                            name.display(),
                            kept.display()
                        )
                    }
                    result => result.with_context(cannot)?,
                }
                unfinished.forget();
                Ok(())
            }
            (Place::Old { entry, file, .. }, Some(unfinished)) => {
                let unfinished = unfinished.name_in(&entry.folder).with_context(cannot)?;
                match entry.folder.rename(unfinished.name(), &entry.folder, &entry.name) {
                    // Another's file in a folder like /tmp, or a mounted one: it can be written, but not replaced.
                    Err(error) if is_bound_to_its_place(&error) => {
                        return overwrite(file, &mut content).with_context(cannot);
                    }
                    result => result.with_context(cannot)?,
                }
                unfinished.forget();
                Ok(())
            }
            (Place::Old { file, .. }, None) => overwrite(file, &mut content).with_context(cannot),
            (Place::Stream(mut stream), _) => {
                match content.write_to(&mut stream).and_then(|()| stream.flush()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                    result => result.with_context(cannot),
                }
            }
            // Staging a new file makes one beside.
            (Place::New(_), None) => Ok(()),
        }
    }
}

impl Unfinished {
    fn create_in(folder: &Directory) -> io::Result<Self> {
        match folder.create_nameless()? {
            Some(file) => Ok(Self::Nameless(file)),
            None => Self::named_in(folder),
        }
    }

    fn named_in(folder: &Directory) -> io::Result<Self> {
        let (registered, file) = Registered::create_file(folder)?;
        Ok(Self::Named(file, registered))
    }

    fn file(&self) -> &File {
        match self {
            Self::Nameless(file) | Self::Named(file, _) => file,
        }
    }

    /// Gives it a name of its own in its folder, if it has none.
    fn name_in(self, folder: &Directory) -> io::Result<Registered> {
        match self {
            Self::Named(_, registered) => Ok(registered),
            Self::Nameless(file) => Registered::name_file(folder, &file),
        }
    }
}

impl Entry {
    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

/// Returns the text that every error begins with: under sudo it says in whose name.
fn cannot_write(path: &Path) -> String {
    format!("cannot write {}{}", path.display(), caller::as_whom())
}

/// Writes a file at once.
///
/// # Errors
/// As of [`ResultFile::open`], [`ResultFile::stage`] and [`Staged::commit`].
pub fn write(path: &Path, force: bool, text: &str) -> Result<()> {
    ResultFile::open(path, force)?.stage(text.into())?.commit()
}

/// Whether a file cannot be replaced, though perhaps written.
fn is_bound_to_its_place(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ResourceBusy)
}

/// Gives a file another content where it is.
fn overwrite(mut file: File, content: &mut Content) -> io::Result<()> {
    file.set_len(0)?;
    content.write_to(&mut file)?;
    file.sync_all()
}

/// The descriptor of ours that a path means, as `/dev/stdout`, `/dev/fd/3` and links to them do.
fn own_descriptor(path: &Path) -> Option<RawFd> {
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = fs::canonicalize(folder_of(&path)).ok()?;
        if folder == own {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(fs::read_link(&path).ok()?);
    }
    None
}

/// A second descriptor of the same open file: it goes on where the first one is, and truncates nothing.
fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: this takes numbers only; one that is no descriptor is refused.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(io::Error::other("it is open for reading only"));
    }
    // SAFETY: as above.
    let duplicate = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if duplicate < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) }.into())
}

#[cfg(test)]
mod tests;
