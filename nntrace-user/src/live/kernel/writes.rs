//! The program on writes, for marks that targets write to `trace_marker` themselves: taken at the system call.

use std::{fs::File, os::fd::AsRawFd as _};

use aya::{EbpfLoader, maps::Array};

use super::{Kernel, KernelError, btf::Btf, links::Links, object::Object};
use crate::live::{trace_marker, tracefs};

/// Program on writes. `writev` passes its text in pieces, each of which would be a mark of its own, and
/// `trace_marker` refuses `pwrite`.
const PROGRAM: &str = "marker_write";

/// The program and its attachment.
pub(super) struct WritePrograms {
    /// Offsets on the way to the open files of a task, if BTF has them.
    offsets: Option<[u32; 5]>,
    links: Links,
}

impl WritePrograms {
    pub(super) fn new(btf: Option<&Btf>) -> Self {
        Self { offsets: btf.and_then(offsets), links: Links::default() }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        if let Some(offsets) = &self.offsets {
            loader.override_global("FILE_OFFSETS", offsets, true);
        }
    }

    fn attach(&mut self, object: &mut Object) -> Result<(), KernelError> {
        let failed = |reason: String| KernelError::Attach { point: trace_marker::NAME.into(), reason };
        if self.offsets.is_none() {
            let reason = "the kernel does not tell where it keeps open files (CONFIG_DEBUG_INFO_BTF); take marks from functions: --marks uprobe";
            return Err(failed(reason.into()));
        }
        let mount = tracefs::mount_point().ok_or_else(|| failed(tracefs::lacking()))?;
        let path = mount.join(trace_marker::NAME);
        let marker = File::options()
            .write(true)
            .open(&path)
            .map_err(|source| KernelError::File { path: path.display().to_string(), source })?;
        object.load_raw("learn_marker")?;
        object.run("learn_marker", None, &[u64::from(marker.as_raw_fd().cast_unsigned())])?;
        let learnt: Array<_, u64> = object.table("MARKER")?;
        if learnt.get(&0, 0).map_err(KernelError::reading)? == 0 {
            return Err(failed("its operations could not be read".into()));
        }
        self.links.attach(object, PROGRAM, "sys_enter")
    }

    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

/// Returns this kernel's offsets on the way to the open files of a task, in the order the programs need; `None` when
/// BTF lacks them.
fn offsets(btf: &Btf) -> Option<[u32; 5]> {
    Some([
        btf.pointer_offset("task_struct", "files", 1, "files_struct")?,
        btf.pointer_offset("files_struct", "fdt", 1, "fdtable")?,
        btf.offset("fdtable", "max_fds")?,
        btf.pointer_offset("fdtable", "fd", 2, "file")?,
        btf.pointer_offset("file", "f_op", 1, "file_operations")?,
    ])
}

impl Kernel {
    /// Takes marks from the targets' writes to `trace_marker`, from now on until [`Kernel::detach_marks`].
    ///
    /// # Errors
    /// When `trace_marker` cannot be distinguished from other files, or the kernel refuses.
    pub(crate) fn attach_writes(&mut self) -> Result<(), KernelError> {
        self.writes.attach(&mut self.object)
    }
}
