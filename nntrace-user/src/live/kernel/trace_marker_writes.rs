//! The program on writes, for marks that targets write to `trace_marker` themselves: taken at the system call.

use std::{fs::File, os::fd::AsRawFd as _};

use aya::maps::Array;

use super::{Kernel, KernelError, object::Object, open_files::OpenFiles, tracepoint_links::Links};
use crate::live::{trace_marker, tracefs};

/// Program on writes. `writev` passes its text in pieces, each of which would be a mark of its own, and
/// `trace_marker` refuses `pwrite`.
const PROGRAM: &str = "marker_write";

/// The program and its attachment.
#[derive(Default)]
pub(super) struct WritePrograms {
    links: Links,
}

impl WritePrograms {
    fn attach(&mut self, object: &mut Object, files: &OpenFiles) -> Result<(), KernelError> {
        let failed = |reason: String| KernelError::Attach { point: trace_marker::NAME.into(), reason };
        if !files.are_known() {
            return Err(failed(format!("{}; take marks from functions: --marks uprobe", OpenFiles::UNKNOWN)));
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

impl Kernel {
    /// Takes marks from the targets' writes to `trace_marker`, from now on until [`Kernel::detach_marks`].
    ///
    /// # Errors
    /// When `trace_marker` cannot be distinguished from other files, or the kernel refuses.
    pub(crate) fn attach_writes(&mut self) -> Result<(), KernelError> {
        self.writes.attach(&mut self.object, &self.files)
    }
}
