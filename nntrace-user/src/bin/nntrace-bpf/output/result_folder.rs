//! A folder of results: in its place only when every file in it is whole.

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::result_file::{UNFINISHED, folder_of};

/// Mode of a new folder, before the umask.
const NEW_MODE: u32 = 0o777;

/// Folder of results that is being written, beside its place. Dropped, it is gone.
#[derive(Debug)]
pub struct ResultFolder {
    /// As the user wrote it.
    place: PathBuf,
    unfinished: TempDir,
    /// Whether it replaces one.
    replaces: bool,
}

impl ResultFolder {
    /// Creates the folder, but not in its place yet. One that exists there is replaced only by `force`, and only if it has
    /// nothing in it but results with these names.
    ///
    /// # Errors
    /// When it exists already, or cannot be created.
    pub fn open(place: &Path, names: &[&str], force: bool) -> Result<Self> {
        let cannot = || format!("cannot write {}", place.display());
        let replaces = match fs::read_dir(place) {
            Ok(_) if !force => bail!("{} exists already; --force replaces it", place.display()),
            Ok(entries) => {
                for entry in entries {
                    let name: OsString = entry.with_context(cannot)?.file_name();
                    if !names.iter().any(|known| name == *known) {
                        bail!(
                            "cannot replace {}: {} in it is no such result, and would be lost; move it away",
                            place.display(),
                            name.display()
                        );
                    }
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error).with_context(cannot),
        };
        let unfinished = beside(place).with_context(cannot)?;
        Ok(Self { place: place.to_owned(), unfinished, replaces })
    }

    /// Returns the folder to write to.
    pub fn path(&self) -> &Path {
        self.unfinished.path()
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// When the place is taken meanwhile, or cannot be written any more. What was there stays.
    pub fn commit(self) -> Result<()> {
        let Self { place, unfinished, replaces } = self;
        let cannot = || format!("cannot write {}", place.display());
        let old = if replaces { Some(beside(&place).with_context(cannot)?) } else { None };
        let old = old.as_ref().map(|folder| folder.path().join("replaced"));
        if let Some(old) = &old {
            fs::rename(&place, old).with_context(cannot)?;
        }
        if let Err(error) = fs::rename(unfinished.path(), &place) {
            if let Some(old) = &old {
                fs::rename(old, &place)
                    .with_context(|| format!("what {} was is in {}", place.display(), old.display()))?;
            }
            return Err(error).with_context(cannot);
        }
        // It has another name now.
        let _ = unfinished.keep();
        Ok(())
    }
}

/// Creates a folder beside a place.
fn beside(place: &Path) -> Result<TempDir> {
    let folder = folder_of(place);
    tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(NEW_MODE))
        .tempdir_in(folder)
        .with_context(|| format!("no new folder can be created in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_it_is_whole() {
        let parent = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(parent.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let place = parent.path().join("a.parquet");
        let open = |force| ResultFolder::open(&place, &["x", "y"], force);
        drop(open(false).unwrap());
        assert!(names().is_empty(), "{:?}", names());
        for (text, force) in [("first", false), ("second", true)] {
            let folder = open(force).unwrap();
            fs::write(folder.path().join("x"), text).unwrap();
            folder.commit().unwrap();
            assert_eq!(fs::read_to_string(place.join("x")).unwrap(), text);
            assert_eq!(names(), ["a.parquet"]);
        }
        assert!(open(false).unwrap_err().to_string().contains("--force"));
    }

    #[test]
    fn nothing_else_is_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("a.parquet");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("thesis"), "").unwrap();
        let error = ResultFolder::open(&place, &["x"], true).unwrap_err().to_string();
        assert!(error.contains("thesis") && place.join("thesis").exists(), "{error}");
        let error = ResultFolder::open(&parent.path().join("none/a.parquet"), &[], false).unwrap_err();
        assert!(format!("{error:#}").contains("none"), "{error:#}");
    }

    #[test]
    fn who_comes_first_stays() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("a.parquet");
        let folder = ResultFolder::open(&place, &[], false).unwrap();
        fs::create_dir(&place).unwrap();
        fs::write(place.join("x"), "").unwrap();
        assert!(folder.commit().is_err());
        assert!(place.join("x").exists());
    }
}
