//! Names of the flags of `open`.

use std::collections::BTreeSet;

use nix::libc::{self, c_int};
use serde::{Serialize, Serializer};

/// Flag of `open`: ways to access come first, the others by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flag {
    /// Way to access a file.
    Access(u64),
    /// Flag with a name, or bits without any.
    Other(u64),
}

/// Flag for large files, which libraries need not pass: that of the kernel.
const LARGE_FILE: c_int = if cfg!(target_arch = "aarch64") { 0o40_0000 } else { 0o10_0000 };

/// Flags that are more than one bit: they come before their bits.
const COMPOUND: [(c_int, &str); 2] = [(libc::O_SYNC, "O_SYNC"), (libc::O_TMPFILE, "O_TMPFILE")];

const FLAGS: [(c_int, &str); 14] = [
    (libc::O_CREAT, "O_CREAT"),
    (libc::O_EXCL, "O_EXCL"),
    (libc::O_NOCTTY, "O_NOCTTY"),
    (libc::O_TRUNC, "O_TRUNC"),
    (libc::O_APPEND, "O_APPEND"),
    (libc::O_NONBLOCK, "O_NONBLOCK"),
    (libc::O_DSYNC, "O_DSYNC"),
    (libc::O_ASYNC, "O_ASYNC"),
    (libc::O_DIRECT, "O_DIRECT"),
    (LARGE_FILE, "O_LARGEFILE"),
    (libc::O_DIRECTORY, "O_DIRECTORY"),
    (libc::O_NOFOLLOW, "O_NOFOLLOW"),
    (libc::O_NOATIME, "O_NOATIME"),
    (libc::O_CLOEXEC, "O_CLOEXEC"),
];

/// Flag of a file without a name.
pub(super) const NAMELESS: Flag = Flag::Other(libc::O_TMPFILE.cast_unsigned() as u64);

/// Flag of a descriptor that is a place only, whose two ways to access mean nothing.
const PATH: (c_int, &str) = (libc::O_PATH, "O_PATH");

/// Returns the flags of a call.
pub(super) fn names(flags: u64) -> BTreeSet<Flag> {
    let bits = |flag: c_int| u64::from(flag.cast_unsigned());
    let access = bits(libc::O_ACCMODE);
    let mut rest = flags & !access;
    let mut names = BTreeSet::from([Flag::Access(flags & access)]);
    for (flag, _) in COMPOUND.into_iter().chain(FLAGS).chain([PATH]) {
        if rest & bits(flag) == bits(flag) {
            rest &= !bits(flag);
            names.insert(Flag::Other(bits(flag)));
        }
    }
    if rest != 0 {
        names.insert(Flag::Other(rest));
    }
    names
}

/// Whether the file that is opened has no name.
pub(super) fn are_nameless(flags: u64) -> bool {
    names(flags).contains(&NAMELESS)
}

impl Flag {
    fn name(self) -> String {
        match self {
            Self::Access(0) => "O_RDONLY".into(),
            Self::Access(1) => "O_WRONLY".into(),
            Self::Access(2) => "O_RDWR".into(),
            Self::Access(number) => format!("{number:#o}"),
            Self::Other(bits) => COMPOUND
                .into_iter()
                .chain(FLAGS)
                .chain([PATH])
                .find(|(flag, _)| u64::from(flag.cast_unsigned()) == bits)
                .map_or_else(|| format!("{bits:#o}"), |(_, name)| name.into()),
        }
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(flags: c_int) -> Vec<String> {
        names(u64::from(flags.cast_unsigned())).into_iter().map(Flag::name).collect()
    }

    #[test]
    fn flags_are_named_the_access_first() {
        assert_eq!(named(libc::O_RDONLY), ["O_RDONLY"]);
        assert_eq!(named(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC), ["O_WRONLY", "O_CREAT", "O_TRUNC"]);
        assert_eq!(named(libc::O_RDWR | libc::O_CLOEXEC), ["O_RDWR", "O_CLOEXEC"]);
        assert_eq!(named(3), ["0o3"]);
    }

    #[test]
    fn what_is_more_than_one_bit_is_one_flag() {
        assert_eq!(named(libc::O_RDWR | libc::O_TMPFILE), ["O_RDWR", "O_TMPFILE"]);
        assert_eq!(named(libc::O_DIRECTORY), ["O_RDONLY", "O_DIRECTORY"]);
        assert_eq!(named(libc::O_SYNC), ["O_RDONLY", "O_SYNC"]);
        assert_eq!(named(libc::O_DSYNC), ["O_RDONLY", "O_DSYNC"]);
    }

    #[test]
    fn bits_without_a_name_are_shown() {
        let flags: Vec<String> = names(1 << 40 | 1 << 41).into_iter().map(Flag::name).collect();
        assert_eq!(flags, ["O_RDONLY", "0o60000000000000"]);
    }

    #[test]
    fn every_flag_has_bits_of_its_own() {
        let all: BTreeSet<c_int> =
            COMPOUND.into_iter().chain(FLAGS).chain([PATH]).map(|(flag, _)| flag).collect();
        assert_eq!(all.len(), COMPOUND.len() + FLAGS.len() + 1);
        assert!(!all.contains(&0));
    }
}
