//! Examination of a whole file: which engines it contains, and what to probe of them.

use std::{fs::File, path::Path};

use memmap2::Mmap;
use thiserror::Error;

use super::{
    bounds::FunctionBounds,
    catalog::Catalog,
    code,
    examined_file::Library,
    image::Image,
    probe::Level,
    recognition,
    resolve::{self, Resolved},
};
use crate::live::target::ElfErrorReason;

/// Reason why a file cannot be examined.
#[derive(Debug, Error)]
pub(in crate::live) enum ExaminationError {
    /// It cannot be read.
    #[error("cannot read it: {0}; check the path and its permissions")]
    Read(std::io::Error),
    /// It is no file with code of these architectures.
    #[error(transparent)]
    Elf(#[from] ElfErrorReason),
}

/// Returns the engines of a catalog that a file contains, resolved for a level.
///
/// The file is mapped, not read: what is not looked at takes no memory.
///
/// # Errors
/// When it cannot be read, or is no ELF file for one of the two architectures.
pub(in crate::live) fn examine(
    path: &Path,
    catalog: &Catalog,
    level: Level,
) -> Result<Vec<Resolved>, ExaminationError> {
    with_library(path, |library| {
        let recognized = recognition::engines_in(library, catalog);
        resolve::resolve(library, &recognized, level)
    })
}

/// Place of a probe at the begin of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct FunctionEntry {
    /// Offset in the file.
    pub(in crate::live) offset: u64,
    /// Bytes that the function has put on the stack before it.
    pub(in crate::live) pushed: u64,
}

/// Returns the begin of the function of this name that a file exports; `None` if it exports none that can be probed.
///
/// # Errors
/// As of [`examine`].
pub(in crate::live) fn exported_function(
    path: &Path,
    name: &str,
) -> Result<Option<FunctionEntry>, ExaminationError> {
    with_library(path, |library| {
        let image = library.image();
        let address = image.exported(name)?.address;
        let entry = code::entry_point(image, &FunctionBounds::of(image), address).ok()?;
        Some(FunctionEntry { offset: image.file_offset(entry.address)?, pushed: entry.sp_offset })
    })
}

/// Maps a file and hands it over.
pub(in crate::live) fn with_library<T>(
    path: &Path,
    work: impl FnOnce(&Library<'_, '_>) -> T,
) -> Result<T, ExaminationError> {
    let file = File::open(path).map_err(ExaminationError::Read)?;
    let is_file = file.metadata().map_err(ExaminationError::Read)?.is_file();
    if !is_file {
        return Err(ElfErrorReason::NotElf.into());
    }
    // SAFETY: the mapping is private and read only, and nothing of it outlives this function. Who overwrites the file
    // meanwhile changes the bytes that are read, each of which is checked for what it is used for; who cuts it short
    // ends this process by SIGBUS, as it ends the programs that run the file's code.
    let data = unsafe { Mmap::map(&file) }.map_err(ExaminationError::Read)?;
    let image = Image::parse(&data)?;
    Ok(work(&Library::new(path, &data, &image)))
}
