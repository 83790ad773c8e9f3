//! File under examination: what is costly to find in it is found once, when it is needed.

use std::cell::OnceCell;

use memchr::memmem;

use super::{
    api_table::table_behind,
    engine_map::{Affixes, ClassName, Version, VersionSource},
    image::Image,
    rtti::Rtti,
};
use crate::live::{
    demangling,
    target::examiner::{Folders, LEVELS},
};

/// File under examination.
pub(in crate::live) struct Library<'image, 'data> {
    file_name: &'image str,
    folders: &'image dyn Folders,
    /// Its content.
    data: &'data [u8],
    image: &'image Image<'data>,
    rtti: OnceCell<Rtti<'image, 'data>>,
}

impl<'image, 'data> Library<'image, 'data> {
    /// Begins the examination of a file with this name and content, which `image` was parsed from.
    pub(in crate::live) fn new(
        file_name: &'image str,
        folders: &'image dyn Folders,
        data: &'data [u8],
        image: &'image Image<'data>,
    ) -> Self {
        Self { file_name, folders, data, image, rtti: OnceCell::new() }
    }

    /// Returns its image.
    pub(in crate::live) fn image(&self) -> &'image Image<'data> {
        self.image
    }

    /// Returns the file's name.
    pub(super) fn file_name(&self) -> &str {
        self.file_name
    }

    /// Returns the index of its classes.
    pub(super) fn rtti(&self) -> &Rtti<'image, 'data> {
        self.rtti.get_or_init(|| Rtti::of(self.image))
    }

    /// Returns the mangled names of the classes that are meant, as far as it has information on them or on what derives
    /// from them. Only a file in which the name occurs at all is indexed.
    pub(super) fn classes(&self, class: &ClassName) -> Vec<String> {
        let pattern = &class.mangled;
        let has = |text: &[u8]| memmem::find(self.data, text).is_some();
        let name = pattern.needle();
        if !pattern.is_exact() {
            return if has(name.as_bytes()) { self.rtti().names_like(pattern) } else { Vec::new() };
        }
        let is_known = has(&[name.as_bytes(), b"\0"].concat()) && self.rtti().knows(name);
        if is_known { vec![name.to_owned()] } else { Vec::new() }
    }

    /// Returns the version of an engine by the first source that has one.
    pub(super) fn version(&self, sources: &[VersionSource]) -> Option<Version> {
        sources.iter().find_map(|source| match source {
            VersionSource::Table(export) => Version::of(table_behind(self.image, export).ok()?.version?),
            VersionSource::Beside(affixes) => self.version_beside(affixes),
        })
    }

    /// Returns the version in the name of something beside the file, or beside a folder that it is in.
    fn version_beside(&self, affixes: &Affixes) -> Option<Version> {
        (0..LEVELS).find_map(|level| {
            let names = self.folders.names(level);
            let versions: Vec<Version> = names.iter().filter_map(|name| affixes.version_in(name)).collect();
            // Several versions side by side tell nothing of this file.
            let (first, others) = versions.split_first()?;
            others.iter().all(|other| other == first).then(|| first.clone())
        })
    }
}

/// Returns the shortest of some classes' names, demangled, as the name of what they share.
pub(super) fn common_name(classes: &[&str]) -> String {
    let names = classes.iter().map(|class| demangling::class(class));
    names.min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b))).unwrap_or_default()
}
