//! Reasons why an ELF file cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
};

use object::elf;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::pinned_file::present_name;

/// Machine that this program is for, and can trace.
pub(super) const MACHINE: elf::Machine = if cfg!(target_arch = "x86_64") {
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
#[derive(Debug, Error, Serialize, Deserialize)]
pub(crate) enum ElfErrorReason {
    /// The file cannot be read.
    #[error("cannot read it: {0}; check the path and its permissions")]
    Io(
        #[from]
        #[serde(with = "error_number")]
        io::Error,
    ),
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
    /// The process that parses it failed.
    #[error("not examined: {0}")]
    NotExamined(String),
    /// A library or an object file.
    #[error("it has no entry point in its code: give an executable")]
    NoEntry,
}

impl ElfErrorReason {
    /// Whether the file is of a kind that has no code for this machine, and not one that could not be read.
    pub(in crate::live) fn is_other_kind(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::Cut | Self::NotExamined(_))
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

pub(super) fn machine_name(machine: elf::Machine) -> String {
    match machine {
        elf::EM_386 => "x86".to_owned(),
        elf::EM_ARM => "arm".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "arm64".to_owned(),
        elf::EM_RISCV => "risc-v".to_owned(),
        other => format!("machine {}", other.0),
    }
}

/// An error of the system as its number.
mod error_number {
    use std::io;

    use nix::libc;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(error: &io::Error, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(error.raw_os_error().unwrap_or(libc::EIO))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<io::Error, D::Error> {
        i32::deserialize(deserializer).map(io::Error::from_raw_os_error)
    }
}
