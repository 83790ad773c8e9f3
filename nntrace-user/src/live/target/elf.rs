//! Reading of the few needed parts of an ELF file, without loading it: file offsets, symbol tables, first
//! instructions.
//!
//! The files belong to others, and may be damaged or malicious: every number in them is checked.

mod notes;

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use memchr::memmem;
use nix::libc;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{NativeEndian, ReadRef as _, elf};
use thiserror::Error;

use super::pinned_file::present_name;
use super::probe_points::{self, ProbePoints};
use super::tail_calls::Jumps;
use crate::foreign_map::ForeignMap;

pub(super) type Symbol = elf::Sym64<NativeEndian>;
type Header = elf::FileHeader64<NativeEndian>;
type Segment = elf::ProgramHeader64<NativeEndian>;

const ENDIAN: NativeEndian = NativeEndian;
/// Size of a symbol or string table at most; a file with a larger one is damaged.
const LARGEST_TABLE: u64 = 1 << 30;

/// Length of a mark function at most; of a longer one, only so much is examined.
const LONGEST: u64 = 1 << 16;

/// Machine that this program is for, and can trace.
const MACHINE: elf::Machine = if cfg!(target_arch = "x86_64") {
    elf::EM_X86_64
} else if cfg!(target_arch = "aarch64") {
    elf::EM_AARCH64
} else {
    elf::EM_NONE
};

/// Error of an ELF file that cannot be used.
#[derive(Debug, Error)]
#[error("{}: {reason}", .path.display())]
pub struct ElfError {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason.
    #[source]
    pub(crate) reason: ElfErrorReason,
}

/// Reason why an ELF file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ElfErrorReason {
    /// The file cannot be read.
    #[error("cannot read it: {0}; check the path and its permissions")]
    Io(#[from] io::Error),
    /// The file is of another kind.
    #[error("not an ELF file: nothing to probe in it")]
    NotElf,
    /// A 32-bit program or library.
    #[error("a 32-bit file ({0}): only 64-bit code of this machine can be traced, build the target for it")]
    Class32(String),
    /// A file of the other byte order.
    #[error("its bytes are in the other order than this machine's: build the target for this machine")]
    ForeignEndian,
    /// A file for another machine.
    #[error("it is for {found}, this machine runs {host}: build the target for this machine", host = machine_name(MACHINE))]
    ForeignMachine {
        /// Machine that it is for.
        found: String,
    },
    /// The file is inconsistent.
    #[error("damaged ELF file: {0}; copy or build it again")]
    Malformed(String),
    /// The file became shorter meanwhile.
    #[error(
        "it was cut short while it was read: what it contains is not known; trace it again when it is whole"
    )]
    Cut,
    /// A library or an object file.
    #[error("it has no entry point in its code: give an executable")]
    NoEntry,
}

impl ElfErrorReason {
    /// Whether the file is of a kind that has no code for this machine, and not one that could not be read.
    pub(in crate::live) fn is_other_kind(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::Cut)
    }

    pub(super) fn in_file(self, path: &Path) -> ElfError {
        ElfError { path: present_name(path), reason: self }
    }
}

impl From<object::read::Error> for ElfErrorReason {
    fn from(error: object::read::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

fn machine_name(machine: elf::Machine) -> String {
    match machine {
        elf::EM_386 => "x86".to_owned(),
        elf::EM_ARM => "arm".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "arm64".to_owned(),
        elf::EM_RISCV => "risc-v".to_owned(),
        other => format!("machine {}", other.0),
    }
}

/// Maps a file and hands its bytes over: those that are not looked at take no memory.
///
/// # Errors
/// When it cannot be read, or was cut short meanwhile; and those of `work`.
pub(in crate::live) fn with_file<T>(
    path: &Path,
    work: impl FnOnce(&[u8]) -> Result<T, ElfErrorReason>,
) -> Result<T, ElfErrorReason> {
    // A pipe would wait for a writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ElfErrorReason::NotElf);
    }
    let map = ForeignMap::of(&file)?;
    let result = map.with_bytes(work);
    if map.is_damaged() { Err(ElfErrorReason::Cut) } else { result }
}

/// Returns the entry point of an executable, as an offset in its file. A probe there stops a program after the
/// dynamic loader has mapped its libraries, and before any of its own code runs except the libraries' constructors.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, is damaged, or has no entry point.
pub(crate) fn entry_offset(path: &Path) -> Result<u64, ElfError> {
    with_file(path, |bytes| {
        let elf = Elf::parse(bytes)?;
        elf.code_offset(elf.header.e_entry(ENDIAN)).ok_or(ElfErrorReason::NoEntry)
    })
    .map_err(|reason| reason.in_file(path))
}

/// Returns the probe points of the function whose first instruction is at an offset of a file.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, or is damaged.
pub(crate) fn probe_points(path: &Path, offset: u64) -> Result<ProbePoints, ElfError> {
    with_file(path, |bytes| Ok(Elf::parse(bytes)?.probe_points(offset)))
        .map_err(|reason| reason.in_file(path))
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
