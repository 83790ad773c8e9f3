//! Files that traced processes open, as the kernel programs report them.
//!
//! A report is a [`FileRecord`] and after it the texts: the path as it was given to the system call, with its NUL, and
//! then the names on the way from a place that the kernel knows to the root, each with its NUL.

/// Bytes of a path as it was given at most, with its NUL: the kernel takes no longer one (`PATH_MAX`).
pub const PATH_BYTES: usize = 4096;

/// Bytes of one name in a path at most, with its NUL (`NAME_MAX`).
pub const NAME_BYTES: usize = 256;

/// Bytes of the texts of a report at most: a power of two.
pub const TEXTS_BYTES: usize = 2 * PATH_BYTES;

/// Names on the way to the root at most, places where file systems are mounted included.
pub const MOST_NAMES: usize = 64;

/// Size of the ring of these reports, bytes: a thousand paths of usual length at least.
pub const FILE_RING_BYTES: u32 = 1 << 20;

/// System call that opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FileCall {
    /// `open`, which arm64 has not.
    Open = 1,
    /// `creat`, which arm64 has not.
    Creat = 2,
    /// `openat`.
    OpenAt = 3,
    /// `openat2`.
    OpenAt2 = 4,
    /// `execve`; of one that succeeded, `execveat` is not distinguished.
    Execve = 5,
    /// `execveat` that failed.
    ExecveAt = 6,
}

impl FileCall {
    /// All calls.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Creat, Self::OpenAt, Self::OpenAt2, Self::Execve, Self::ExecveAt];

    /// Returns the call of a number in a record.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|call| *call as u32 == number)
    }

    /// Whether it executes the file.
    #[must_use]
    #[inline(always)]
    pub const fn executes(self) -> bool {
        self as u32 >= Self::Execve as u32
    }
}

/// Place that the names of a report lead from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Place {
    /// No place: the kernel does not describe its structures, or the way was too long.
    Unknown = 0,
    /// The file that was opened or executed.
    File = 1,
    /// The folder that a path is relative to, where there is no file.
    Folder = 2,
}

impl Place {
    /// Returns the place of a number in a record; one that is not known is none.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::File,
            2 => Self::Folder,
            _ => Self::Unknown,
        }
    }
}

/// Call that opened a file, or tried to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct FileRecord {
    /// Time at which the call returned, ns.
    pub time: u64,
    /// Flags as they were given; 0 where the call has none.
    pub flags: u64,
    /// Number of a [`FileCall`].
    pub call: u32,
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Descriptor of the folder that a path is relative to; `AT_FDCWD` where the call takes none.
    pub dirfd: i32,
    /// Descriptor, or the negative error.
    pub result: i32,
    /// Bytes of the path as it was given, with its NUL; 0 where it could not be read.
    pub given: u32,
    /// Bytes of the names after it.
    pub names: u32,
    /// Number of a [`Place`].
    pub place: u32,
    /// Number of the mount namespace of the process; 0 where it is not known.
    pub mount_namespace: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Report of a call, as it is made: the texts have no fixed length.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FileReport {
    /// Record.
    pub record: FileRecord,
    /// Texts, with room for one more name.
    pub texts: [u8; TEXTS_BYTES + NAME_BYTES],
}

/// Offsets in the kernel's structures on the way from a task to the names of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PathOffsets {
    /// 1 when the others are known, else 0.
    pub are_known: u32,
    /// Path of an open file: `file.f_path`.
    pub file_path: u32,
    /// Folders of a task: `task_struct.fs`.
    pub task_folders: u32,
    /// Path of the working folder: `fs_struct.pwd`.
    pub working_folder: u32,
    /// Memory of a task: `task_struct.mm`.
    pub task_memory: u32,
    /// Executable of a memory: `mm_struct.exe_file`.
    pub executable: u32,
    /// Mount of a path: `path.mnt`.
    pub path_mount: u32,
    /// Entry of a path: `path.dentry`.
    pub path_entry: u32,
    /// Public part of a mount: `mount.mnt`.
    pub mount_public: u32,
    /// Entry that a mount begins with: `mount.mnt.mnt_root`.
    pub mount_root: u32,
    /// Mount that a mount is in: `mount.mnt_parent`.
    pub mount_parent: u32,
    /// Entry of that mount where it is: `mount.mnt_mountpoint`.
    pub mount_point: u32,
    /// Entry of the folder: `dentry.d_parent`.
    pub entry_parent: u32,
    /// Name of an entry: `dentry.d_name.name`.
    pub entry_name: u32,
    /// Path as it was given to an exec: `linux_binprm.filename`.
    pub exec_path: u32,
    /// Namespaces of a task: `task_struct.nsproxy`.
    pub task_namespaces: u32,
    /// Namespace of mounts among them: `nsproxy.mnt_ns`.
    pub mount_namespace: u32,
    /// Number of a namespace of mounts: `mnt_namespace.ns.inum`.
    pub namespace_number: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_places_have_numbers_of_their_own() {
        for call in FileCall::ALL {
            assert_eq!(FileCall::from_number(call as u32), Some(call));
        }
        assert_eq!(FileCall::from_number(0), None);
        assert_eq!(FileCall::ALL.map(FileCall::executes), [false, false, false, false, true, true]);
        for place in [Place::Unknown, Place::File, Place::Folder] {
            assert_eq!(Place::from_number(place as u32), place);
        }
    }

    #[test]
    fn texts_follow_the_record_without_a_gap() {
        assert_eq!(core::mem::offset_of!(FileReport, texts), size_of::<FileRecord>());
        assert!(TEXTS_BYTES.is_power_of_two());
    }
}
