//! ELF file for x86-64 or arm64 seen by address: its bytes, its symbols, and the pointers that the dynamic loader leaves
//! in it.
//!
//! Everything except `.symtab` is found as the loader finds it, through the program headers and the dynamic table: section
//! headers may be missing or outdated. Nothing is copied, so a library of half a gigabyte costs the pages that are
//! looked at.

mod dynamic;
mod imports;
mod relocations;
mod symbols;

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable};
use object::{LittleEndian, elf};
use serde::{Deserialize, Serialize};

use self::dynamic::Dynamic;
use self::relocations::Relocations;
#[cfg(test)]
pub(in crate::live) use self::symbols::Symbol;
use crate::live::target::{ElfErrorReason, check_identity};

type Header = elf::FileHeader64<LittleEndian>;
type Sections<'data> = SectionTable<'data, Header>;

const ENDIAN: LittleEndian = LittleEndian;
/// Loaded parts of a file at most: linkers make up to ten, and tools that change files add a few.
const MOST_SEGMENTS: usize = 64;
/// End of the addresses that programs have.
const END: u64 = 1 << 63;
/// Places that a text is found at, at most.
const MOST_OCCURRENCES: usize = 64;
/// Length of a text at most; the mangled names of some templates have tens of thousands of characters.
const LONGEST_TEXT: usize = 1 << 16;

/// Architecture that a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) enum Machine {
    X86_64,
    Arm64,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Arm64 => "arm64",
        })
    }
}

/// Word of a file that holds an address once the file is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum Pointer<'data> {
    /// Address in the same file.
    Address(u64),
    /// Symbol of another file; what is added to its address is left out.
    Import(&'data str),
}

/// Destination of a pointer, before the name of an imported symbol is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    /// Address in the same file.
    Address(u64),
    /// Index of an imported symbol in the dynamic symbol table.
    Import(u32),
}

/// Part of the file that is loaded to an address.
#[derive(Debug)]
struct Segment {
    address: u64,
    /// Bytes that are in the file.
    size: u64,
    offset: u64,
    is_code: bool,
    is_writable: bool,
}

/// ELF file seen by address. Addresses are those of the file, which the loader shifts by a constant.
pub(in crate::live) struct Image<'data> {
    data: &'data [u8],
    machine: Machine,
    /// Whether it is loaded at its own addresses, so that its pointers need no relocation.
    is_fixed: bool,
    /// By address.
    segments: Vec<Segment>,
    /// Ranges of instructions, by address.
    code: Vec<Range<u64>>,
    /// Range of `.eh_frame_hdr`.
    frames: Option<Range<u64>>,
    notes: Vec<&'data elf::ProgramHeader64<LittleEndian>>,
    sections: Sections<'data>,
    dynamic: Dynamic<'data>,
    relocations: OnceLock<Relocations<'data>>,
}

impl<'data> Image<'data> {
    /// Examines the headers of a file.
    ///
    /// # Errors
    /// When it is no ELF file for one of the two architectures, or its headers are damaged.
    pub(in crate::live) fn parse(data: &'data [u8]) -> Result<Self, ElfErrorReason> {
        let machine = match check_identity(data, &[elf::EM_X86_64, elf::EM_AARCH64])? {
            elf::EM_AARCH64 => Machine::Arm64,
            _ => Machine::X86_64,
        };
        let header = Header::parse(data)?;
        let programs = header.program_headers(ENDIAN, data)?;
        // A file can be used without them.
        let sections = header.sections(ENDIAN, data).unwrap_or_default();
        let segments = loaded(programs, data.len() as u64);
        let mut image = Self {
            data,
            machine,
            is_fixed: header.e_type(ENDIAN) == elf::ET_EXEC,
            code: code(&segments, &sections),
            segments,
            frames: programs.iter().find(|program| program.p_type(ENDIAN) == elf::PT_GNU_EH_FRAME).map(
                |program| {
                    let start = program.p_vaddr(ENDIAN);
                    start..start.saturating_add(program.p_memsz(ENDIAN))
                },
            ),
            notes: programs.iter().filter(|program| program.p_type(ENDIAN) == elf::PT_NOTE).collect(),
            sections,
            dynamic: Dynamic::default(),
            relocations: OnceLock::new(),
        };
        let entries = programs.iter().find_map(|program| program.dynamic(ENDIAN, data).ok().flatten());
        image.dynamic = Dynamic::read(&image, entries.unwrap_or_default());
        Ok(image)
    }

    /// Returns the architecture that the file is for.
    pub(in crate::live) fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the name by which other files refer to this one.
    pub(in crate::live) fn soname(&self) -> Option<&'data str> {
        self.dynamic.soname
    }

    /// Returns the identity that the linker gave the file.
    pub(in crate::live) fn build_id(&self) -> Option<&'data [u8]> {
        self.notes.iter().find_map(|program| {
            let mut notes = program.notes(ENDIAN, self.data).ok()??;
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU && note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID {
                    return Some(note.desc());
                }
            }
            None
        })
    }

    /// Returns bytes of the file by their address. They have to lie in one segment.
    pub(in crate::live) fn bytes(&self, address: u64, length: u64) -> Option<&'data [u8]> {
        self.rest(address)?.get(..usize::try_from(length).ok()?)
    }

    /// Returns the bytes from an address to the end of its segment.
    pub(super) fn rest(&self, address: u64) -> Option<&'data [u8]> {
        let segment = self.segment(address)?;
        let within = address - segment.address;
        let (from, to) = (segment.offset + within, segment.offset + segment.size);
        self.data.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }

    /// Returns the word that the file has at an address, without relocation.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(*self.rest(address)?.first_chunk()?))
    }

    /// Returns the text at an address, which ends with a zero byte.
    pub(in crate::live) fn text(&self, address: u64) -> Option<&'data str> {
        let bytes = self.rest(address)?;
        let bytes = &bytes[..bytes.len().min(LONGEST_TEXT)];
        str::from_utf8(&bytes[..memchr::memchr(0, bytes)?]).ok()
    }

    /// Returns the first addresses at which the file has these bytes.
    pub(super) fn occurrences(&self, bytes: &[u8]) -> Vec<u64> {
        let finder = memchr::memmem::Finder::new(bytes);
        let within = |segment: &Segment| {
            let data = self.rest(segment.address).unwrap_or_default();
            let found = finder.find_iter(data).map(|at| segment.address + at as u64);
            found.take(MOST_OCCURRENCES).collect::<Vec<_>>()
        };
        self.segments.iter().flat_map(within).take(MOST_OCCURRENCES).collect()
    }

    /// Whether the file is loaded at its own addresses, so that code may hold addresses as they are.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Returns the ranges of instructions, by address.
    pub(super) fn code_ranges(&self) -> impl Iterator<Item = &Range<u64>> {
        self.code.iter()
    }

    /// Whether instructions lie at an address.
    pub(in crate::live) fn is_code(&self, address: u64) -> bool {
        let next = self.code.partition_point(|range| range.start <= address);
        next.checked_sub(1).is_some_and(|last| self.code[last].contains(&address))
    }

    /// Whether an aligned word of data lies at an address: the loader writes it, and programs may.
    pub(in crate::live) fn is_data_word(&self, address: u64) -> bool {
        let is_within = |segment: &Segment| segment.size - (address - segment.address) >= 8;
        address.is_multiple_of(8)
            && self.segment(address).is_some_and(|segment| segment.is_writable && is_within(segment))
    }

    /// Returns the offset in the file of what is at an address.
    pub(in crate::live) fn file_offset(&self, address: u64) -> Option<u64> {
        let segment = self.segment(address)?;
        Some(segment.offset + (address - segment.address))
    }

    /// Returns the address of the instruction at an offset in the file.
    #[cfg(test)]
    pub(in crate::live) fn address_at(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.is_code).find_map(|segment| {
            let within = offset.checked_sub(segment.offset).filter(|&within| within < segment.size)?;
            Some(segment.address + within)
        })
    }

    /// Returns the range of `.eh_frame_hdr`, the table of the functions' call frames.
    pub(super) fn frames(&self) -> Option<Range<u64>> {
        self.frames.clone()
    }

    /// Returns the pointer that the loader leaves at an address; `None` where there is none, as at a null pointer.
    pub(in crate::live) fn pointer(&self, address: u64) -> Option<Pointer<'data>> {
        match self.target(address)? {
            Target::Address(to) => Some(Pointer::Address(to)),
            Target::Import(symbol) => Some(Pointer::Import(self.symbol_name(symbol)?)),
        }
    }

    /// Returns the name of an imported symbol.
    pub(super) fn symbol_name(&self, symbol: u32) -> Option<&'data str> {
        self.dynamic.name(symbol)
    }

    /// Returns the address in the same file that the word at an address holds.
    pub(super) fn local_pointer(&self, address: u64) -> Option<u64> {
        match self.target(address)? {
            Target::Address(to) => Some(to),
            Target::Import(_) => None,
        }
    }

    /// As [`Self::pointer`], without the name of a symbol.
    pub(super) fn target(&self, address: u64) -> Option<Target> {
        self.relocations().target(self, address).or_else(|| self.fixed_target(address))
    }

    /// Calls a function for each pointer that the loader writes before any code of the file runs: where it is, and where
    /// it leads.
    pub(super) fn for_each_loaded_pointer(&self, mut visit: impl FnMut(u64, Target)) {
        self.relocations().for_each_at_load(self, &mut visit);
    }

    /// Calls a function for each pointer in the file: where it is, and where it leads.
    pub(super) fn for_each_pointer(&self, mut visit: impl FnMut(u64, Target)) {
        self.relocations().for_each(self, &mut visit);
        if self.is_fixed {
            for segment in &self.segments {
                let first = segment.address.next_multiple_of(8);
                let data = self.rest(first).unwrap_or_default();
                for (address, word) in (first..).step_by(8).zip(data.as_chunks::<8>().0) {
                    let to = u64::from_le_bytes(*word);
                    if self.segment(to).is_some() {
                        visit(address, Target::Address(to));
                    }
                }
            }
        }
    }

    /// Returns the word at an address of a file that is not relocated, if it is an address.
    fn fixed_target(&self, address: u64) -> Option<Target> {
        let to = self.word(address).filter(|_| self.is_fixed)?;
        self.segment(to).map(|_| Target::Address(to))
    }

    fn relocations(&self) -> &Relocations<'data> {
        self.relocations.get_or_init(|| Relocations::index(self.machine, &self.dynamic))
    }

    /// Returns the segment whose part of the file has an address.
    fn segment(&self, address: u64) -> Option<&Segment> {
        let next = self.segments.partition_point(|segment| segment.address <= address);
        let segment = &self.segments[next.checked_sub(1)?];
        (address - segment.address < segment.size).then_some(segment)
    }
}

/// Returns the parts of the file that are loaded, as far as they are in it, by address.
fn loaded(programs: &[elf::ProgramHeader64<LittleEndian>], length: u64) -> Vec<Segment> {
    let mut segments: Vec<_> = programs
        .iter()
        .filter(|program| program.p_type(ENDIAN) == elf::PT_LOAD)
        .map(|program| {
            let (address, offset) = (program.p_vaddr(ENDIAN), program.p_offset(ENDIAN));
            // Neither the end of the file nor that of the addresses is exceeded.
            let most = length.saturating_sub(offset).min(END.saturating_sub(address));
            let size = program.p_filesz(ENDIAN).min(most);
            let flags = program.p_flags(ENDIAN);
            let (is_code, is_writable) = (flags.contains(elf::PF_X), flags.contains(elf::PF_W));
            Segment { address, size, offset, is_code, is_writable }
        })
        .filter(|segment| segment.size > 0)
        .take(MOST_SEGMENTS)
        .collect();
    segments.sort_by_key(|segment| segment.address);
    segments
}

/// Returns the ranges of instructions: some linkers put constants into executable segments, which only section headers
/// distinguish.
fn code(segments: &[Segment], sections: &Sections<'_>) -> Vec<Range<u64>> {
    let executable = sections.iter().filter(|section| {
        let flags = section.sh_flags(ENDIAN);
        flags.contains(elf::SHF_ALLOC) && flags.contains(elf::SHF_EXECINSTR)
    });
    let range = |start: u64, length: u64| start..start.saturating_add(length);
    let mut code: Vec<_> =
        executable.map(|section| range(section.sh_addr(ENDIAN), section.sh_size(ENDIAN))).collect();
    if code.is_empty() {
        let segments = segments.iter().filter(|segment| segment.is_code);
        code = segments.map(|segment| range(segment.address, segment.size)).collect();
    }
    code.sort_by_key(|range| range.start);
    // Those that overlap become one.
    code.dedup_by(|next, range| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
    code
}

#[cfg(test)]
mod tests;
