//! The programs on system calls that open files, and on execs, for recordings.
//!
//! While they are attached, every system call of the machine takes a little longer: so they are only where the files are
//! wanted, and on the end of the calls alone.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use aya::{
    EbpfLoader,
    maps::{MapData, PerCpuArray, RingBuf},
};
use nntrace_common::opened_files::{FILE_RING_BYTES, PathOffsets};

use super::{Kernel, KernelError, btf::Btf, object::Object, tracepoint_links::Links};

/// Programs, with the raw tracepoint of each.
const PROGRAMS: [(&str, &str); 2] = [("file_call", "sys_exit"), ("file_executed", "sched_process_exec")];

/// Smallest size of a ring, bytes; the loader rounds it up to a page.
const UNUSED_RING_BYTES: u32 = 4096;

/// The programs, their attachments and their ring.
pub(super) struct FilePrograms {
    offsets: PathOffsets,
    ring_bytes: u32,
    ring: Option<RingBuf<MapData>>,
    links: Links,
}

impl FilePrograms {
    /// Prepares the programs, with a ring of use only where files are wanted.
    pub(super) fn new(btf: Option<&Btf>, are_wanted: bool) -> Self {
        Self {
            offsets: btf.and_then(offsets).unwrap_or_default(),
            ring_bytes: if are_wanted { FILE_RING_BYTES } else { UNUSED_RING_BYTES },
            ring: None,
            links: Links::default(),
        }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .override_global("PATH_OFFSETS", &self.offsets, true)
            .map_max_entries("OPENED_FILES", self.ring_bytes);
    }

    fn attach(&mut self, object: &mut Object) -> Result<(), KernelError> {
        self.ring = Some(object.take_ring("OPENED_FILES")?);
        PROGRAMS.iter().try_for_each(|(program, point)| self.links.attach(object, program, point))
    }

    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

/// Returns this kernel's offsets; `None` when BTF lacks one.
fn offsets(btf: &Btf) -> Option<PathOffsets> {
    let public = btf.offset("mount", "mnt")?;
    Some(PathOffsets {
        are_known: 1,
        file_path: btf.offset("file", "f_path")?,
        task_folders: btf.pointer_offset("task_struct", "fs", 1, "fs_struct")?,
        working_folder: btf.offset("fs_struct", "pwd")?,
        task_memory: btf.pointer_offset("task_struct", "mm", 1, "mm_struct")?,
        executable: btf.pointer_offset("mm_struct", "exe_file", 1, "file")?,
        path_mount: btf.pointer_offset("path", "mnt", 1, "vfsmount")?,
        path_entry: btf.pointer_offset("path", "dentry", 1, "dentry")?,
        mount_public: public,
        mount_root: public.checked_add(btf.pointer_offset("vfsmount", "mnt_root", 1, "dentry")?)?,
        mount_parent: btf.pointer_offset("mount", "mnt_parent", 1, "mount")?,
        mount_point: btf.pointer_offset("mount", "mnt_mountpoint", 1, "dentry")?,
        entry_parent: btf.pointer_offset("dentry", "d_parent", 1, "dentry")?,
        entry_name: btf.offset("dentry", "d_name")?.checked_add(btf.offset("qstr", "name")?)?,
        exec_path: btf.offset("linux_binprm", "filename")?,
        task_namespaces: btf.pointer_offset("task_struct", "nsproxy", 1, "nsproxy")?,
        mount_namespace: btf.pointer_offset("nsproxy", "mnt_ns", 1, "mnt_namespace")?,
        namespace_number: btf.offset("mnt_namespace", "ns")?.checked_add(btf.offset("ns_common", "inum")?)?,
    })
}

impl Kernel {
    /// Reports the files that targets open from now on, until [`Kernel::detach_files`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn attach_files(&mut self) -> Result<(), KernelError> {
        self.opened_files.attach(&mut self.object)
    }

    /// Reports no more files: system calls cost what they did before.
    pub(in crate::live) fn detach_files(&mut self) {
        self.opened_files.detach(&mut self.object);
    }

    /// Passes the reports of opened files so far to `sink`, and frees their space.
    pub(in crate::live) fn take_opened_files(&mut self, mut sink: impl FnMut(&[u8])) {
        let Some(ring) = &mut self.opened_files.ring else { return };
        while let Some(report) = ring.next() {
            sink(&report);
        }
    }

    /// Returns a duplicated descriptor that becomes readable when the ring of opened files asks to be drained; `None` where
    /// files are not wanted.
    pub(in crate::live) fn opened_files_alarm(&self) -> io::Result<Option<OwnedFd>> {
        self.opened_files.ring.as_ref().map(|ring| ring.as_fd().try_clone_to_owned()).transpose()
    }

    /// Returns how many reports of opened files found no room.
    ///
    /// # Errors
    /// When the map is missing or of another shape.
    pub(in crate::live) fn lost_opened_files(&self) -> Result<u64, KernelError> {
        let map: PerCpuArray<_, u64> = self.object.table("OPENED_FILES_LOST")?;
        Ok(map.get(&0, 0).map_err(KernelError::reading)?.iter().sum())
    }
}
