//! Examination of a whole file: which engines it contains, and what to probe of them.

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
use crate::live::target::{ElfErrorReason, Object, PinnedFile, with_file};

/// Bytes of a file that are looked at, at most: what follows is not code, but files that were appended. A file may
/// also be larger than any disk, with holes.
const MOST_BYTES: usize = 4 << 30;

/// Function of C++ runtimes that handlers of exceptions call first (Itanium C++ ABI, section 2.5.3 of part II).
const CAUGHT: &str = "__cxa_begin_catch";

/// Returns the engines of a catalog that a file contains, resolved for a level; with the words that lead to their
/// functions, where hooks are wanted.
///
/// The file is mapped, not read: what is not looked at takes no memory.
///
/// # Errors
/// When it cannot be read, or is no ELF file for one of the two architectures.
pub(in crate::live) fn examine(
    file: &PinnedFile,
    catalog: &Catalog,
    level: Level,
    wants_hooks: bool,
) -> Result<Vec<Resolved>, ElfErrorReason> {
    with_library(file, |library| {
        let recognized = recognition::engines_in(library, catalog);
        resolve::resolve(library, &recognized, level, wants_hooks)
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
pub(super) fn exported_function(
    file: &PinnedFile,
    name: &str,
) -> Result<Option<FunctionEntry>, ElfErrorReason> {
    with_library(file, |library| {
        let image = library.image();
        let address = image.exported(name)?.address;
        let entry = code::entry_point(image, &FunctionBounds::of(image), address).ok()?;
        Some(FunctionEntry { offset: image.file_offset(entry.address)?, pushed: entry.sp_offset })
    })
}

/// Returns a file's function that each handler of exceptions calls first; `None` unless the file is a C++ runtime of a known kind.
///
/// # Errors
/// As of [`examine`].
pub(in crate::live) fn handler_entry(
    object: &Object,
) -> Result<Option<(PinnedFile, FunctionEntry)>, ElfErrorReason> {
    let file = object.pin()?;
    match exported_function(&file, CAUGHT) {
        Ok(entry) => Ok(entry.map(|entry| (file, entry))),
        Err(error) if error.is_other_kind() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maps a file and hands it over, as far as [`MOST_BYTES`].
pub(in crate::live) fn with_library<T>(
    file: &PinnedFile,
    work: impl FnOnce(&Library<'_, '_>) -> T,
) -> Result<T, ElfErrorReason> {
    with_file(file, |bytes| {
        let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
        let image = Image::parse(bytes)?;
        Ok(work(&Library::new(file.name(), bytes, &image)))
    })
}
