//! Errors of the kernel side, with the kernel's reason and a remedy.

use std::{error, fs, io};

use aya::maps::MapError;
use nix::{
    libc,
    sys::resource::{Resource, getrlimit},
};
use thiserror::Error;

use super::{architecture::WrongArchitecture, btf::KERNEL as BTF};
use crate::live::privilege;

/// Files that a process may well have open for a run, with room for lanes and targets.
pub(crate) const ENOUGH_FILES: u64 = 1024;

/// Error of the kernel side.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel refuses BPF to this user.
    #[error("{0}")]
    Privilege(String),
    /// This process has no descriptors left.
    #[error(
        "this process may have {limit} files open, which are too few for the kernel programs and their tables: run it after `ulimit -n {ENOUGH_FILES}`, \
         or raise LimitNOFILE of the service"
    )]
    Descriptors {
        /// Files that it may have open.
        limit: u64,
    },
    /// The kernel lacks something.
    #[error(
        "this kernel ({release}) cannot load the programs: {reason}; nntrace-bpf needs Linux 5.8 or newer with CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS and CONFIG_UPROBE_EVENTS"
    )]
    Unsupported {
        /// Release, as in `uname -r`.
        release: String,
        /// Answer of the kernel.
        reason: String,
    },
    /// The kernel was built without probes on functions.
    #[error(
        "this kernel cannot probe functions, as it was built without CONFIG_UPROBE_EVENTS: there are no marks of functions, no engines \
         and no --call; --marks syscall counts the marks that programs write to trace_marker, and kernels with that option, such as \
         Debian's, have the rest"
    )]
    NoUprobes,
    /// `/proc` and the kernel number processes differently for us.
    #[error(
        "/proc shows the processes of another PID namespace than the one that this runs in: mount its own with `mount -t proc proc \
         /proc` (`unshare --mount-proc` does), or nothing in it can be found"
    )]
    ForeignProc,
    /// We run in a PID namespace of our own, in which ids cannot be known.
    #[error(
        "this runs in a PID namespace of its own, such as a container's, and the kernel does not describe (by BTF, in {BTF}) how \
         tasks are numbered in it: run in the host's (`docker run --pid=host`, or outside of the container)"
    )]
    PidNamespace,
    /// The object is for another architecture.
    #[error(transparent)]
    Architecture(#[from] WrongArchitecture),
    /// The object lacks an item.
    #[error("the kernel object that was built in holds no {0}; it is from another version: build again")]
    Missing(&'static str),
    /// A map could not be used.
    #[error("cannot {what}: {source}")]
    Map {
        /// Attempted operation.
        what: &'static str,
        /// Answer of the kernel.
        source: MapError,
    },
    /// A program could not be attached.
    #[error("cannot attach to {point}: {reason}")]
    Attach {
        /// Attach point.
        point: String,
        /// Answer of the kernel.
        reason: String,
    },
    /// A file of the kernel could not be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause.
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

pub(super) fn attach_error<E: error::Error + 'static>(point: &str) -> impl Fn(E) -> KernelError {
    let point = point.to_owned();
    move |error| match privilege::missing(&error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Attach { point: point.clone(), reason: privilege::causes(&error) },
    }
}

pub(super) fn refused(error: &(dyn error::Error + 'static)) -> KernelError {
    if privilege::is_any(error, &[libc::EMFILE]) {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(limit, _)| limit);
        return KernelError::Descriptors { limit };
    }
    match privilege::missing(error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Unsupported {
            release: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            reason: privilege::causes(error),
        },
    }
}
