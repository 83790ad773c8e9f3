//! Examination of a whole file: which engines it contains, and what to probe of them.

use serde::{Deserialize, Serialize};

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
use crate::live::target::{
    ElfErrorReason, Object, PinnedFile,
    examiner::{self, Examination, Folders},
};

/// Bytes of a file that are looked at, at most: what follows is not code, but files that were appended. A file may
/// also be larger than any disk, with holes.
const MOST_BYTES: usize = 4 << 30;

/// Function of C++ runtimes that handlers of exceptions call first (Itanium C++ ABI, section 2.5.3 of part II).
const CAUGHT: &str = "__cxa_begin_catch";

/// Search for the engines of a catalog, resolved for a level; with the words that lead to their functions, where hooks are
/// wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Engines {
    /// Name of the file, for engines that are known by it.
    file_name: String,
    catalog: Catalog,
    level: Level,
    wants_hooks: bool,
}

impl Examination for Engines {
    type Findings = Vec<Resolved>;

    const NAME: &'static str = "engines";

    fn find(&self, bytes: &[u8], folders: &dyn Folders) -> Result<Vec<Resolved>, ElfErrorReason> {
        with_image(bytes, |bytes, image| {
            let library = Library::new(&self.file_name, folders, bytes, image);
            let recognized = recognition::engines_in(&library, &self.catalog);
            resolve::resolve(&library, &recognized, self.level, self.wants_hooks)
        })
    }
}

/// Returns the engines of a catalog that a file contains, resolved for a level; with the words that lead to their
/// functions, where hooks are wanted.
///
/// # Errors
/// When it cannot be read, or is no ELF file for one of the two architectures.
pub(in crate::live) fn examine(
    file: &PinnedFile,
    catalog: &Catalog,
    level: Level,
    wants_hooks: bool,
) -> Result<Vec<Resolved>, ElfErrorReason> {
    let name = file.name().file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let engines = Engines { file_name: name.to_owned(), catalog: catalog.clone(), level, wants_hooks };
    examiner::examine_named(file, file.name(), &engines)
}

/// Place of a probe at the start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct FunctionEntry {
    /// Offset in the file.
    pub(in crate::live) offset: u64,
    /// Bytes that the function has put on the stack before it.
    pub(in crate::live) pushed: u64,
}

/// Search for the start of a function that a file exports.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct ExportedFunction {
    name: String,
}

impl Examination for ExportedFunction {
    type Findings = Option<FunctionEntry>;

    const NAME: &'static str = "exported function";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Option<FunctionEntry>, ElfErrorReason> {
        with_image(bytes, |_, image| {
            let address = image.exported(&self.name)?.address;
            let entry = code::entry_point(image, &FunctionBounds::of(image), address).ok()?;
            Some(FunctionEntry { offset: image.file_offset(entry.address)?, pushed: entry.sp_offset })
        })
    }
}

/// Returns the start of the function of this name that a file exports; `None` if it exports none that can be probed.
///
/// # Errors
/// As of [`examine`].
pub(super) fn exported_function(
    file: &PinnedFile,
    name: &str,
) -> Result<Option<FunctionEntry>, ElfErrorReason> {
    examiner::examine(file, &ExportedFunction { name: name.to_owned() })
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

/// Hands the image of a file over, as far as [`MOST_BYTES`], with its bytes.
///
/// # Errors
/// When it is not an ELF file for one of the two architectures.
pub(in crate::live) fn with_image<'data, T>(
    bytes: &'data [u8],
    work: impl FnOnce(&'data [u8], &Image<'data>) -> T,
) -> Result<T, ElfErrorReason> {
    let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
    let image = Image::parse(bytes)?;
    Ok(work(bytes, &image))
}
