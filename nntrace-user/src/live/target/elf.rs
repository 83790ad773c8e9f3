//! Reading of the few needed parts of an ELF file, without loading it: file offsets, symbol tables, first
//! instructions.
//!
//! The files belong to others, and may be damaged or malicious: every number in them is checked.

mod notes;

use std::ffi::CStr;
use std::path::Path;

use memchr::memmem;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{NativeEndian, ReadRef as _, elf};
use serde::{Deserialize, Serialize};

use super::elf_error::{ElfError, ElfErrorReason, MACHINE, machine_name};
use super::examiner::{Examination, Folders, examine_at};
use super::probe_points::{self, ProbePoints};
use super::tail_calls::Jumps;

pub(super) type Symbol = elf::Sym64<NativeEndian>;
type Header = elf::FileHeader64<NativeEndian>;
type Segment = elf::ProgramHeader64<NativeEndian>;

const ENDIAN: NativeEndian = NativeEndian;
/// Size of a symbol or string table at most; a file with a larger one is damaged.
const LARGEST_TABLE: u64 = 1 << 30;

/// Length of a name at most, bytes: names may overlap, so that a file could have any number of long ones.
const LONGEST_NAME: usize = 1 << 14;

/// Length of a mark function at most; of a longer one, only so much is examined.
const LONGEST: u64 = 1 << 16;

/// Returns the entry point of an executable, as an offset in its file. A probe there stops a program after the
/// dynamic loader has mapped its libraries, and before any of its own code runs except the libraries' constructors.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, is damaged, or has no entry point.
pub(crate) fn entry_offset(path: &Path) -> Result<u64, ElfError> {
    examine_at(path, &EntryOffset)
}

/// Search for the entry point of an executable.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct EntryOffset;

impl Examination for EntryOffset {
    type Findings = u64;

    const NAME: &'static str = "entry offset";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<u64, ElfErrorReason> {
        let elf = Elf::parse(bytes)?;
        elf.code_offset(elf.header.e_entry(ENDIAN)).ok_or(ElfErrorReason::NoEntry)
    }
}

/// Returns the probe points of the function whose first instruction is at an offset of a file.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, or is damaged.
pub(crate) fn probe_points(path: &Path, offset: u64) -> Result<ProbePoints, ElfError> {
    examine_at(path, &PointsAt { offset })
}

/// Search for the probe points of the function at an offset.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct PointsAt {
    offset: u64,
}

impl Examination for PointsAt {
    type Findings = ProbePoints;

    const NAME: &'static str = "probe points";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<ProbePoints, ElfErrorReason> {
        Ok(Elf::parse(bytes)?.probe_points(self.offset))
    }
}

/// Symbol table with its names.
pub(super) struct SymbolTable<'data> {
    kind: elf::SectionType,
    pub(super) symbols: &'data [Symbol],
    names: &'data [u8],
}

impl<'data> SymbolTable<'data> {
    /// Whether it is `.symtab`, the table that `strip` removes.
    pub(super) fn is_full(&self) -> bool {
        self.kind == elf::SHT_SYMTAB
    }

    /// Returns the symbol's name without its version (`name@@VERSION`), if it is text.
    pub(super) fn name(&self, symbol: &Symbol) -> Option<&'data str> {
        let from = self.names.get(symbol.st_name.get(ENDIAN) as usize..)?;
        let from = &from[..from.len().min(LONGEST_NAME)];
        let name = CStr::from_bytes_until_nul(from).ok()?.to_str().ok()?;
        name.split('@').next().filter(|name| !name.is_empty())
    }

    /// Whether any name may contain this text: a quick test, as most files have no name of interest.
    pub(super) fn may_hold(&self, text: &str) -> bool {
        memmem::find(self.names, text.as_bytes()).is_some()
    }
}

/// ELF file for this machine.
pub(super) struct Elf<'data> {
    data: &'data [u8],
    header: &'data Header,
    segments: &'data [Segment],
}

impl<'data> Elf<'data> {
    pub(super) fn parse(data: &'data [u8]) -> Result<Self, ElfErrorReason> {
        check_identity(data, &[MACHINE])?;
        let header = Header::parse(data)?;
        let segments = header.program_headers(ENDIAN, data)?;
        Ok(Self { data, header, segments })
    }

    /// Returns the file offset of the instruction at an address, if it is in an executable segment.
    pub(super) fn code_offset(&self, address: u64) -> Option<u64> {
        self.offset_in(address, elf::PF_X)
    }

    /// Returns the file offset of the variable at an address, if it is in a writable segment.
    pub(super) fn data_offset(&self, address: u64) -> Option<u64> {
        self.offset_in(address, elf::PF_W)
    }

    fn offset_in(&self, address: u64, permission: elf::ProgramFlags) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let fits = segment.p_type(ENDIAN) == elf::PT_LOAD && segment.p_flags(ENDIAN).contains(permission);
            let within = address.checked_sub(segment.p_vaddr(ENDIAN))?;
            let offset = segment.p_offset(ENDIAN).checked_add(within)?;
            (fits && within < segment.p_filesz(ENDIAN)).then_some(offset)
        })
    }

    /// Returns the probe points of the function whose first instruction is at an offset.
    pub(super) fn probe_points(&self, offset: u64) -> ProbePoints {
        ProbePoints::of(self.bytes(offset, probe_points::LOOKED_AT), offset)
    }

    /// Returns the jumps of the function at an offset to places outside of it.
    pub(super) fn jumps(&self, offset: u64, length: u64) -> Jumps {
        let address = self.segments.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.p_offset(ENDIAN))?;
            let is_code =
                segment.p_type(ENDIAN) == elf::PT_LOAD && segment.p_flags(ENDIAN).contains(elf::PF_X);
            (is_code && within < segment.p_filesz(ENDIAN))
                .then(|| segment.p_vaddr(ENDIAN).wrapping_add(within))
        });
        address.map_or_else(Jumps::default, |address| {
            Jumps::of(self.bytes(offset, length.min(LONGEST)), address)
        })
    }

    /// Returns `.symtab` and `.dynsym`, as far as they exist.
    pub(super) fn symbol_tables(&self) -> Result<Vec<SymbolTable<'data>>, ElfErrorReason> {
        let sections = self.header.sections(ENDIAN, self.data)?;
        let mut tables = Vec::new();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let Some(section) = sections.iter().find(|section| section.sh_type(ENDIAN) == kind) else {
                continue;
            };
            let names = sections.section(object::SectionIndex(section.sh_link(ENDIAN) as usize))?;
            if section.sh_size(ENDIAN).max(names.sh_size(ENDIAN)) > LARGEST_TABLE {
                return Err(ElfErrorReason::Malformed("a symbol table of more than 1 GiB".to_owned()));
            }
            let symbols: &[Symbol] = section.data_as_array(ENDIAN, self.data)?;
            tables.push(SymbolTable { kind, symbols, names: names.data(ENDIAN, self.data)? });
        }
        Ok(tables)
    }

    /// Returns the interpreter that the kernel starts with the program.
    pub(super) fn interpreter(&self) -> Option<&'data [u8]> {
        self.segments.iter().find_map(|segment| segment.interpreter(ENDIAN, self.data).ok()?)
    }

    /// Returns up to `length` bytes of the file.
    fn bytes(&self, offset: u64, length: u64) -> &'data [u8] {
        let length = length.min((self.data.len() as u64).saturating_sub(offset));
        self.data.read_bytes_at(offset, length).unwrap_or_default()
    }
}

/// Returns the machine that a file is for, which has to be one of these. Distinguishes a file of another kind or machine
/// from a damaged one.
pub(in crate::live) fn check_identity(
    data: &[u8],
    machines: &[elf::Machine],
) -> Result<elf::Machine, ElfErrorReason> {
    let Ok(ident) = data.read_bytes_at(0, 20) else {
        return Err(ElfErrorReason::NotElf);
    };
    if ident[..4] != elf::ELFMAG {
        return Err(ElfErrorReason::NotElf);
    }
    let little = ident[5] == elf::ELFDATA2LSB.0;
    let machine = [ident[18], ident[19]];
    let machine =
        elf::Machine(if little { u16::from_le_bytes(machine) } else { u16::from_be_bytes(machine) });
    if ident[4] == elf::ELFCLASS32.0 {
        Err(ElfErrorReason::Class32(machine_name(machine)))
    } else if little != cfg!(target_endian = "little") {
        Err(ElfErrorReason::ForeignEndian)
    } else if machines.contains(&machine) {
        Ok(machine)
    } else {
        Err(ElfErrorReason::ForeignMachine { found: machine_name(machine) })
    }
}

#[cfg(test)]
mod tests;
