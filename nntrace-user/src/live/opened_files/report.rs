//! Report of a call that opens a file, as it comes from the kernel programs.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::PathBuf};

use nix::libc;
use nntrace_common::opened_files::{FileCall, FileRecord, PATH_BYTES, Place};
use zerocopy::FromBytes as _;

/// Report of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report<'a> {
    pub(super) time: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) call: FileCall,
    pub(super) flags: u64,
    pub(super) dirfd: i32,
    /// Descriptor, or the negative error.
    pub(super) result: i32,
    /// Path as it was given, without its NUL; `None` where it could not be read.
    pub(super) given: Option<&'a [u8]>,
    /// Whether it was longer.
    pub(super) is_truncated: bool,
    /// Place that the names lead from.
    pub(super) place: Place,
    /// Number of the mount namespace of the process; 0 where it is not known.
    pub(super) mount_namespace: u32,
    /// Names up to the root, each with a NUL.
    names: &'a [u8],
}

impl<'a> Report<'a> {
    /// Decodes a report; `None` when it is not one that the programs make.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (record, texts) = FileRecord::read_from_prefix(bytes).ok()?;
        let (given, texts) = texts.split_at_checked(record.given as usize)?;
        let names = texts.get(..record.names as usize)?;
        let given = given.strip_suffix(&[0]);
        let is_too_long = record.result == -libc::ENAMETOOLONG;
        Some(Self {
            time: record.time,
            pid: record.tgid,
            tid: record.tid,
            call: FileCall::from_number(record.call)?,
            flags: record.flags,
            dirfd: record.dirfd,
            result: record.result,
            given,
            is_truncated: is_too_long && given.is_some_and(|given| given.len() + 1 == PATH_BYTES),
            place: Place::from_number(record.place),
            mount_namespace: record.mount_namespace,
            names,
        })
    }

    /// Returns the path of the place, without this many of its last names.
    pub(super) fn path(&self, skipped: usize) -> PathBuf {
        let names = self.names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        let mut names: Vec<&[u8]> = names.skip(skipped).collect();
        names.reverse();
        let mut path = PathBuf::from("/");
        path.extend(names.into_iter().map(OsStr::from_bytes));
        path
    }
}
