//! Pointers that the dynamic loader writes, found by their addresses.
//!
//! Linkers put the relocations against addresses of the same file first, by address. A large library has millions of
//! them: they are searched where they are, and only the others, whose order is by symbol, get an index.

use object::elf;
use object::read::elf::{Rela as _, Relr as _, Sym as _};

use super::dynamic::{Dynamic, Rela};
use super::{ENDIAN, Image, Machine, Target};

/// Relocations of a file by address.
pub(super) struct Relocations<'data> {
    machine: Machine,
    tables: [Table<'data>; 2],
    /// Words whose value in the file is an address, by address.
    stored: Vec<Block>,
}

/// Table of relocations.
struct Table<'data> {
    entries: &'data [Rela],
    /// Number of entries at the table's begin whose addresses ascend.
    ascending: usize,
    /// Positions of the other entries, by address.
    others: Vec<u32>,
}

/// Group of 64 words.
struct Block {
    first: u64,
    /// Bit `n`: the word at `first + 8 * n` is relocated.
    words: u64,
}

/// Value that a relocation writes.
enum Value {
    /// The addend: an address of the same file.
    Relative,
    /// The address of a symbol.
    Symbol,
    /// Another one, which is no plain pointer.
    Other,
}

impl<'data> Relocations<'data> {
    /// Examines the order of a file's relocations.
    pub(super) fn index(machine: Machine, dynamic: &Dynamic<'data>) -> Self {
        Self { machine, tables: dynamic.rela.map(Table::index), stored: stored(dynamic) }
    }

    /// Returns where the word at an address leads, if it is relocated.
    pub(super) fn target(&self, image: &Image<'_>, address: u64) -> Option<Target> {
        if let Some(entry) = self.tables.iter().find_map(|table| table.entry(address)) {
            return self.destination(image, entry);
        }
        let next = self.stored.partition_point(|block| block.first <= address);
        let block = &self.stored[next.checked_sub(1)?];
        let within = address - block.first;
        let is_stored = within.is_multiple_of(8) && within < 512 && block.words >> (within / 8) & 1 == 1;
        if is_stored { image.word(address).map(Target::Address) } else { None }
    }

    /// Calls a function for each pointer: where it is, and where it leads.
    pub(super) fn for_each(&self, image: &Image<'_>, visit: &mut impl FnMut(u64, Target)) {
        self.for_each_with(image, |_| true, visit);
    }

    /// As [`Self::for_each`], without the pointers of calls by name: the loader may write these at the first call.
    pub(super) fn for_each_at_load(&self, image: &Image<'_>, visit: &mut impl FnMut(u64, Target)) {
        let call = match self.machine {
            Machine::X86_64 => elf::R_X86_64_JUMP_SLOT,
            Machine::Arm64 => elf::R_AARCH64_JUMP_SLOT,
        };
        self.for_each_with(image, |kind| kind != call, visit);
    }

    fn for_each_with(
        &self,
        image: &Image<'_>,
        is_wanted: impl Fn(elf::RelocationType) -> bool,
        visit: &mut impl FnMut(u64, Target),
    ) {
        let entries = self.tables.iter().flat_map(|table| table.entries);
        for entry in entries.filter(|entry| is_wanted(entry.r_type(ENDIAN, false))) {
            if let Some(target) = self.destination(image, entry) {
                visit(entry.r_offset(ENDIAN), target);
            }
        }
        for block in &self.stored {
            let words = (0..64).filter(|&word| block.words >> word & 1 == 1);
            for address in words.map(|word| block.first.wrapping_add(8 * word)) {
                if let Some(to) = image.word(address) {
                    visit(address, Target::Address(to));
                }
            }
        }
    }

    fn destination(&self, image: &Image<'_>, entry: &Rela) -> Option<Target> {
        let addend = entry.r_addend(ENDIAN);
        match self.value(entry.r_type(ENDIAN, false)) {
            Value::Relative => Some(Target::Address(addend.cast_unsigned())),
            Value::Symbol => {
                let index = entry.r_sym(ENDIAN, false);
                let symbol = image.dynamic.symbols.get(index as usize)?;
                Some(if symbol.is_undefined(ENDIAN) {
                    Target::Import(index)
                } else {
                    Target::Address(symbol.st_value(ENDIAN).wrapping_add_signed(addend))
                })
            }
            Value::Other => None,
        }
    }

    fn value(&self, kind: elf::RelocationType) -> Value {
        match (self.machine, kind) {
            (Machine::X86_64, elf::R_X86_64_RELATIVE) | (Machine::Arm64, elf::R_AARCH64_RELATIVE) => {
                Value::Relative
            }
            (Machine::X86_64, elf::R_X86_64_64 | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT)
            | (Machine::Arm64, elf::R_AARCH64_ABS64 | elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT) => {
                Value::Symbol
            }
            _ => Value::Other,
        }
    }
}

impl<'data> Table<'data> {
    fn index(entries: &'data [Rela]) -> Self {
        let entries = &entries[..entries.len().min(u32::MAX as usize)];
        let ascend = |pair: &[Rela]| place(&pair[0]) < place(&pair[1]);
        let ascending = entries.windows(2).take_while(|&pair| ascend(pair)).count();
        let ascending = (ascending + 1).min(entries.len());
        let mut others: Vec<_> = (ascending..entries.len()).map(|position| position as u32).collect();
        others.sort_by_key(|&position| place(&entries[position as usize]));
        Self { entries, ascending, others }
    }

    /// Returns the relocation of the word at an address.
    fn entry(&self, address: u64) -> Option<&Rela> {
        let (ascending, _) = self.entries.split_at(self.ascending);
        if let Ok(found) = ascending.binary_search_by_key(&address, place) {
            return Some(&ascending[found]);
        }
        let found = self.others.partition_point(|&other| place(&self.entries[other as usize]) < address);
        let entry = &self.entries[*self.others.get(found)? as usize];
        (place(entry) == address).then_some(entry)
    }
}

/// Returns the address of the word that is relocated.
fn place(entry: &Rela) -> u64 {
    entry.r_offset(ENDIAN)
}

/// Reads the packed relocations: the address of a word, or the 63 words after the last one as bits.
fn stored(dynamic: &Dynamic<'_>) -> Vec<Block> {
    let mut next = 0_u64;
    let block = |entry: &super::dynamic::Relr| {
        let entry = entry.get(ENDIAN);
        if entry & 1 == 0 {
            next = entry.wrapping_add(8);
            Block { first: entry, words: 1 }
        } else {
            let first = next;
            next = next.wrapping_add(63 * 8);
            Block { first, words: entry >> 1 }
        }
    };
    let mut blocks: Vec<_> = dynamic.relr.iter().map(block).collect();
    blocks.sort_by_key(|block| block.first);
    // No word is relocated twice.
    let mut end = 0;
    blocks.retain(|block| {
        let is_next = block.first >= end;
        if is_next {
            end = block.first.saturating_add(8 * u64::from(u64::BITS - block.words.leading_zeros()));
        }
        is_next
    });
    blocks
}
