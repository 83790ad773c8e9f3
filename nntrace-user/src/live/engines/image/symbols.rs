//! Functions and other symbols that a file names.

use object::elf;
use object::read::elf::{SectionHeader as _, Sym as _};

use super::dynamic::{Sym, named, records};
use super::{ENDIAN, Image};

/// Symbol that a file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct Symbol<'data> {
    /// Name as in the file, without a version.
    pub name: &'data str,
    /// Address of its first byte.
    pub address: u64,
    /// Length in bytes; 0 where the file does not have it.
    pub size: u64,
    /// Whether it is in the dynamic symbol table, which `strip` keeps.
    pub is_exported: bool,
}

impl<'data> Image<'data> {
    /// Returns the function or variable of this name that other files can use.
    pub(in crate::live) fn exported(&self, name: &str) -> Option<Symbol<'data>> {
        let index = self.dynamic.find(name)?;
        Some(symbol(self.dynamic.name(index)?, self.dynamic.symbols.get(index as usize)?, true))
    }

    /// Returns the functions that the file names: those that other files can use, then those of the full table. A function
    /// may occur in both.
    pub(in crate::live) fn symbols(&self) -> impl Iterator<Item = Symbol<'data>> {
        let exported = self.dynamic.named().map(|(name, entry)| (name, entry, true));
        let (symbols, names) = self.full_table().unwrap_or_default();
        let all = named(symbols, names).map(|(name, entry)| (name, entry, false));
        exported.chain(all).filter(|(_, entry, _)| is_function(entry)).map(|(name, entry, is_exported)| {
            // In the full table, a version follows the name.
            symbol(name.split('@').next().unwrap_or(name), entry, is_exported)
        })
    }

    /// Returns the symbols of other files that the file uses, with their indexes.
    pub(in crate::live::engines) fn imports(&self) -> impl Iterator<Item = (u32, &'data str)> {
        let imported = (0..).zip(self.dynamic.symbols).filter(|(_, entry)| entry.is_undefined(ENDIAN));
        imported.filter_map(|(index, _)| Some((index, self.dynamic.name(index)?)))
    }

    /// Whether the file lacks the full symbol table.
    pub(in crate::live) fn is_stripped(&self) -> bool {
        self.full_table().is_none()
    }

    /// Returns the symbols of `.symtab` and their names.
    fn full_table(&self) -> Option<(&'data [Sym], &'data [u8])> {
        let table = self.sections.iter().find(|section| section.sh_type(ENDIAN) == elf::SHT_SYMTAB)?;
        let names = self.sections.section(table.link(ENDIAN)).ok()?;
        Some((records(table.data(ENDIAN, self.data).ok()?), names.data(ENDIAN, self.data).ok()?))
    }
}

fn is_function(entry: &Sym) -> bool {
    entry.st_type() == elf::STT_FUNC && !entry.is_undefined(ENDIAN)
}

fn symbol<'data>(name: &'data str, entry: &Sym, is_exported: bool) -> Symbol<'data> {
    Symbol { name, address: entry.st_value(ENDIAN), size: entry.st_size(ENDIAN), is_exported }
}
