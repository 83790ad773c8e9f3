//! Offsets of the open files of a task, for the programs on system calls.

use aya::EbpfLoader;

use super::btf::Btf;

/// Offsets on the way to the open files of a task, if BTF has them.
pub(super) struct OpenFiles(Option<[u32; 8]>);

impl OpenFiles {
    /// Reason why system calls cannot be followed where the offsets are unknown.
    pub(super) const UNKNOWN: &str =
        "the kernel does not tell where it keeps open files (CONFIG_DEBUG_INFO_BTF)";

    pub(super) fn new(btf: Option<&Btf>) -> Self {
        Self(btf.and_then(offsets))
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        if let Some(offsets) = &self.0 {
            loader.override_global("FILE_OFFSETS", offsets, true);
        }
    }

    /// Whether the programs know the way.
    pub(super) fn are_known(&self) -> bool {
        self.0.is_some()
    }
}

/// Returns this kernel's offsets in the order that the programs need; `None` when BTF lacks them.
fn offsets(btf: &Btf) -> Option<[u32; 8]> {
    Some([
        btf.pointer_offset("task_struct", "files", 1, "files_struct")?,
        btf.pointer_offset("files_struct", "fdt", 1, "fdtable")?,
        btf.offset("fdtable", "max_fds")?,
        btf.pointer_offset("fdtable", "fd", 2, "file")?,
        btf.pointer_offset("file", "f_op", 1, "file_operations")?,
        btf.pointer_offset("file", "f_inode", 1, "inode")?,
        btf.offset("inode", "i_mode")?,
        btf.offset("inode", "i_rdev")?,
    ])
}
