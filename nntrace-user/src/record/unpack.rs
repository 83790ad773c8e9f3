//! Unpacking of a pack, whoever made it: all of it is as its list of contents says, or nothing is left of it.

mod archive;
mod error;
mod frames;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufReader, Read as _, Seek as _, Write as _},
    path::Path,
};

use archive::{Archive, Damage};
pub use error::UnpackError;
use serde::Deserialize;

use super::{
    folder,
    format::RUN_FILE,
    pack::layout::{
        self, CONTENTS, Contents, Entry, FILES, KIND, LONGEST_CONTENTS, RECORDING, VERSION, place,
    },
};
use crate::{
    caller::{self, FileRights},
    result_folder::ResultFolder,
};

/// First bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Pack that was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Number of files besides the recording.
    pub files: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Unpacks a pack to a folder that is new or empty. What is there afterwards is a recording.
///
/// # Errors
/// When it is no pack, damaged, newer, larger than allowed, or has anything in it that a pack does not have; the folder is
/// as it was before then.
pub fn unpack(file: &Path, place: &Path, max_size: u64) -> Result<Unpacked, UnpackError> {
    ResultFolder::check(place, folder::KIND, false)?;
    let mut pack = Pack::open(file)?;
    let contents = pack.contents()?;
    pack.check(&contents.entries, max_size)?;
    let mut unfinished = ResultFolder::create(place, folder::KIND, false)?;
    contents.entries.iter().try_for_each(|entry| pack.entry(entry, unfinished.path()))?;
    pack.end()?;
    unfinished.settle()?;
    Ok(Unpacked {
        files: contents.entries.iter().filter(|entry| entry.name.starts_with(FILES)).count(),
        bytes: contents.entries.iter().map(|entry| entry.size).sum(),
    })
}

/// Pack that is being read.
struct Pack<'a> {
    path: &'a Path,
    archive: Archive<BufReader<File>>,
}

impl<'a> Pack<'a> {
    /// Opens a pack.
    fn open(path: &'a Path) -> Result<Self, UnpackError> {
        let error = |source| UnpackError::Read { path: path.to_owned(), source };
        let mut file = caller::open(path).map_err(error)?;
        let mut magic = Vec::new();
        (&mut file).take(ZSTD.len() as u64).read_to_end(&mut magic).map_err(error)?;
        if magic != ZSTD {
            return Err(UnpackError::NoPack {
                path: path.to_owned(),
                reason: "it does not begin as one".to_owned(),
            });
        }
        file.rewind().map_err(error)?;
        Ok(Self { path, archive: Archive::new(BufReader::new(file), layout::BLOCK + LONGEST_CONTENTS) })
    }

    fn refused(&self, reason: impl Into<String>) -> UnpackError {
        UnpackError::Refused { path: self.path.to_owned(), reason: reason.into() }
    }

    fn damaged(&self, damage: Damage) -> UnpackError {
        match damage {
            Damage::Read(source) => UnpackError::Read { path: self.path.to_owned(), source },
            Damage::Other(reason) => self.refused(reason),
        }
    }

    fn no_pack(&self, reason: impl Into<String>) -> UnpackError {
        UnpackError::NoPack { path: self.path.to_owned(), reason: reason.into() }
    }

    /// Reads the list of contents, which is the first entry.
    fn contents(&mut self) -> Result<Contents, UnpackError> {
        /// Keys that lists of all versions have.
        #[derive(Deserialize)]
        struct Version {
            kind: String,
            version: u64,
        }
        let first = self.archive.next_entry().map_err(|damage| self.damaged(damage))?;
        let Some((name, size)) = first.filter(|(name, _)| name == CONTENTS) else {
            return Err(self.no_pack(format!("its first entry is not {CONTENTS}")));
        };
        if size > LONGEST_CONTENTS {
            return Err(self.refused(format!("its {name} has {size} bytes")));
        }
        let mut text = Vec::new();
        let read = self.archive.content(size, |chunk| {
            text.extend_from_slice(chunk);
            Ok(())
        });
        read.map_err(|damage| self.damaged(damage))?;
        let version = serde_json::from_slice::<Version>(&text);
        let version = version.map_err(|error| self.no_pack(format!("its {CONTENTS} is none: {error}")))?;
        if version.kind != KIND {
            return Err(self.no_pack(format!("its {CONTENTS} is of another program")));
        }
        if version.version > u64::from(VERSION) {
            return Err(UnpackError::Newer { path: self.path.to_owned(), version: version.version });
        }
        serde_json::from_slice(&text)
            .map_err(|error| self.refused(format!("its {CONTENTS} is damaged: {error}")))
    }

    /// Checks the list of contents, and allows as many bytes as it says.
    fn check(&mut self, entries: &[Entry], max_size: u64) -> Result<(), UnpackError> {
        let mut names = HashSet::new();
        let (mut size, mut stored) = (0_u64, layout::END);
        for Entry { name, size: of_entry, .. } in entries {
            if place(name).is_none() {
                return Err(self.refused(format!("{name:?} in its {CONTENTS} is no name that a pack has")));
            }
            if !names.insert(name) {
                return Err(self.refused(format!("{name:?} is twice in its {CONTENTS}")));
            }
            size = size.saturating_add(*of_entry);
            let blocks = layout::BLOCK.saturating_add(*of_entry).saturating_add(layout::padding(*of_entry));
            stored = stored.saturating_add(blocks);
        }
        if size > max_size {
            return Err(UnpackError::TooLarge { path: self.path.to_owned(), size, limit: max_size });
        }
        if !entries.iter().any(|entry| entry.name.strip_prefix(RECORDING) == Some(RUN_FILE)) {
            return Err(self.refused(format!("it has no {RECORDING}{RUN_FILE}")));
        }
        self.archive.allow(stored);
        Ok(())
    }

    /// Unpacks the next entry, which is this one of the list of contents.
    fn entry(&mut self, entry: &Entry, folder: &Path) -> Result<(), UnpackError> {
        let Entry { name: listed, size: listed_size, sha256 } = entry;
        let next = self.archive.next_entry().map_err(|damage| self.damaged(damage))?;
        let Some((name, size)) = next else {
            return Err(self.refused(format!("it ends before {listed:?}, which its {CONTENTS} has")));
        };
        if name != *listed {
            return Err(self.refused(format!("its entry {name:?} is where its {CONTENTS} has {listed:?}")));
        }
        if size != *listed_size {
            return Err(
                self.refused(format!("{name:?} has {size} bytes, and {listed_size} in its {CONTENTS}"))
            );
        }
        let place =
            place(listed).ok_or_else(|| self.refused(format!("{name:?} is no name that a pack has")))?;
        let path = folder.join(place);
        let rights = FileRights::of_caller().map_err(|source| UnpackError::write(&path, source))?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| UnpackError::write(parent, source))?;
        }
        let file = File::create_new(&path);
        let mut file = file.map_err(|source| UnpackError::write(&path, source))?;
        drop(rights);
        let mut unwritten = None;
        let read = self
            .archive
            .content(size, |chunk| file.write_all(chunk).map_err(|error| unwritten = Some(error)));
        if let Some(source) = unwritten {
            return Err(UnpackError::write(&path, source));
        }
        let digest = read.map_err(|damage| self.damaged(damage))?;
        if digest != *sha256 {
            return Err(self.refused(format!("the content of {name:?} is not the one of its {CONTENTS}")));
        }
        Ok(())
    }

    /// Checks that the archive ends here.
    fn end(&mut self) -> Result<(), UnpackError> {
        match self.archive.next_entry().map_err(|damage| self.damaged(damage))? {
            None => Ok(()),
            Some((name, _)) => Err(self.refused(format!("its entry {name:?} is not in its {CONTENTS}"))),
        }
    }
}
