//! Programs that write their marks to `trace_marker` themselves: seen at the system call.

use std::{fs, fs::File, os::fd::AsRawFd as _, os::unix::fs::MetadataExt as _, path::Path};

use aya::maps::Array;

use super::{
    btf::Btf,
    kernel::{Kernel, KernelError},
    target::Processes,
    tracefs,
};

/// The file, in tracefs and in each of its instances.
const MARKER: &str = "trace_marker";
/// The program that looks at writes. `writev` hands over its text in pieces, each of which would be a mark of its own, and
/// `pwrite` is refused by `trace_marker`.
pub(super) const PROGRAM: &str = "marker_write";
/// Where this kernel keeps the open files of a task: what the programs need, in their order. `None` when it does not
/// tell.
#[must_use]
pub(crate) fn offsets(btf: &Btf) -> Option<[u32; 5]> {
    Some([
        btf.pointer_offset("task_struct", "files", 1, "files_struct")?,
        btf.pointer_offset("files_struct", "fdt", 1, "fdtable")?,
        btf.offset("fdtable", "max_fds")?,
        btf.pointer_offset("fdtable", "fd", 2, "file")?,
        btf.pointer_offset("file", "f_op", 1, "file_operations")?,
    ])
}

impl Kernel {
    /// Takes marks from what targets write to `trace_marker`, from now on.
    ///
    /// # Errors
    /// When `trace_marker` cannot be told from other files, or the kernel refuses.
    pub(crate) fn attach_writes(&mut self) -> Result<(), KernelError> {
        let failed = |reason: String| KernelError::Attach { point: MARKER.into(), reason };
        if !self.sees_files() {
            let reason = "the kernel does not tell where it keeps open files (CONFIG_DEBUG_INFO_BTF); take marks from functions: --marks uprobe";
            return Err(failed(reason.into()));
        }
        let mount = tracefs::mount_point().ok_or_else(|| failed(tracefs::lacking()))?;
        let path = mount.join(MARKER);
        let marker = File::options()
            .write(true)
            .open(&path)
            .map_err(|source| KernelError::File { path: path.display().to_string(), source })?;
        self.load_raw("learn_marker")?;
        self.run_program("learn_marker", None, &[u64::from(marker.as_raw_fd().cast_unsigned())])?;
        let learnt: Array<_, u64> = self.table("MARKER")?;
        if learnt.get(&0, 0).map_err(KernelError::reading)? == 0 {
            return Err(failed("its operations could not be read".into()));
        }
        self.attach_system_calls()
    }
}

/// Whether a process has `trace_marker` open now, that of any instance.
#[must_use]
pub(crate) fn has_marker_open(processes: &Processes, pid: u32) -> bool {
    let Some(device) = tracefs::mount_point().and_then(|mount| fs::metadata(mount).ok()).map(|at| at.dev())
    else {
        return false;
    };
    let is_marker = |link: &Path| {
        // The link tells the name, what it leads to the file system.
        fs::read_link(link).is_ok_and(|path| path.file_name().is_some_and(|name| name == MARKER))
            && fs::metadata(link).is_ok_and(|file| file.dev() == device)
    };
    let open = fs::read_dir(processes.dir(pid).join("fd"));
    open.into_iter().flatten().flatten().any(|entry| is_marker(&entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_that_is_open_is_seen_and_its_like_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MARKER);
        let _like = File::create(path).unwrap();
        let ours = || has_marker_open(&Processes::default(), std::process::id());
        assert!(!ours());
        let marker = tracefs::mount_point().map(|mount| File::options().write(true).open(mount.join(MARKER)));
        if let Some(Ok(marker)) = marker {
            assert!(ours());
            drop(marker);
            assert!(!ours());
        }
    }
}
