//! Why the kernel side does not work, for people: what the kernel refused, and what mends that.

use std::{error, fs, io};

use aya::{maps::MapError, programs::ProgramError};
use thiserror::Error;

use super::architecture::WrongArchitecture;
use crate::live::privilege;

/// Why the kernel side does not work.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel refuses BPF to this user.
    #[error("{0}")]
    Privilege(String),
    /// The kernel lacks something.
    #[error(
        "this kernel ({release}) cannot load the programs: {reason}; nntrace-bpf needs Linux 5.8 or newer with CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS and CONFIG_UPROBE_EVENTS"
    )]
    Unsupported {
        /// The release, as `uname -r` shows it.
        release: String,
        /// The kernel's answer.
        reason: String,
    },
    /// The object is for other machines.
    #[error(transparent)]
    Architecture(#[from] WrongArchitecture),
    /// The object does not hold what it should.
    #[error("the kernel object that was built in holds no {0}; it is from another version: build again")]
    Missing(&'static str),
    /// A map could not be used.
    #[error("cannot {what}: {source}")]
    Map {
        /// The attempt.
        what: &'static str,
        /// The kernel's answer.
        source: MapError,
    },
    /// A program could not be attached.
    #[error("cannot attach to {point}: {reason}")]
    Attach {
        /// Where to.
        point: String,
        /// The kernel's answer.
        reason: String,
    },
    /// A file of the kernel's could not be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl KernelError {
    pub(in crate::live) fn writing(source: MapError) -> Self {
        Self::Map { what: "write a table of the kernel programs", source }
    }

    pub(in crate::live) fn reading(source: MapError) -> Self {
        Self::Map { what: "read a table of the kernel programs", source }
    }
}

pub(super) fn map_error(what: &'static str) -> impl Fn(MapError) -> KernelError {
    move |source| KernelError::Map { what, source }
}

pub(super) fn attach_error(point: &str) -> impl Fn(ProgramError) -> KernelError {
    let point = point.to_owned();
    move |error| match privilege::missing(&error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Attach { point: point.clone(), reason: privilege::causes(&error) },
    }
}

pub(super) fn refused(error: &(dyn error::Error + 'static)) -> KernelError {
    match privilege::missing(error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Unsupported {
            release: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            reason: privilege::causes(error),
        },
    }
}
