//! The programs on fork, exec and exit, and the table of traced processes.

use std::{fs, os::unix::fs::MetadataExt as _};

use aya::{
    EbpfLoader,
    maps::{HashMap, MapData, RingBuf},
};
use nntrace_common::{
    creds::{CredsOffsets, NOBODY},
    pid_namespace::{OF_HOST, PidNamespace},
    record::TARGET,
};

use super::{
    Kernel,
    btf::Btf,
    error::{KernelError, map_error},
    object::Object,
};
use crate::{caller, live::tracefs};

/// Program that closes the functions of engines which a thread has left when it ends; it needs Linux 5.15 with BTF.
pub(super) const ENGINE_THREAD_END: &str = "engine_thread_end";

/// The programs, with the layout of the event that the one on fork reads.
pub(super) struct ProcessPrograms {
    /// Offset of the child's id in `sched_process_fork`; `None` where the kernel does not describe that event.
    child_offset: Option<u32>,
    /// Offsets of `task_struct.signal` and `signal_struct.live`; 0 where the kernel does not describe them.
    live_threads_offsets: [u32; 2],
    /// Offsets by which a program with privileges of its own is known; 0 where the kernel does not describe them.
    creds_offsets: CredsOffsets,
    /// Number of the PID namespace in which ids are reported, 0 for the host's, and how they are found in it.
    pid_namespace: (u32, PidNamespace),
    /// User and group who may trace nobody else's processes; [`NOBODY`] where all may be traced.
    owner: [u32; 2],
}

impl ProcessPrograms {
    pub(super) fn new(btf: Option<&Btf>) -> Result<Self, KernelError> {
        let offsets = |btf: &Btf| {
            let signal = btf.pointer_offset("task_struct", "signal", 1, "signal_struct")?;
            Some([signal, btf.offset("signal_struct", "live")?])
        };
        let creds = |btf: &Btf| {
            Some(CredsOffsets {
                creds: btf.pointer_offset("task_struct", "cred", 1, "cred")?,
                user: btf.offset("cred", "euid")?,
                group: btf.offset("cred", "egid")?,
                capabilities: btf.offset("cred", "cap_permitted")?,
            })
        };
        let owner = caller::confined().map(|(uid, gid)| [uid.as_raw(), gid.as_raw()]);
        Ok(Self {
            pid_namespace: pid_namespace(btf)?,
            creds_offsets: btf.and_then(creds).unwrap_or_default(),
            owner: owner.unwrap_or([NOBODY; 2]),
            child_offset: tracefs::field_offset("sched/sched_process_fork", "child_pid").ok(),
            live_threads_offsets: btf.and_then(offsets).unwrap_or_default(),
        })
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("FORK_CHILD_OFFSET", self.child_offset.as_ref().unwrap_or(&0), true);
        loader.override_global("LIVE_THREADS_OFFSETS", &self.live_threads_offsets, true);
        loader.override_global("CREDS_OFFSETS", &self.creds_offsets, true);
        loader.override_global("PID_NAMESPACE_NUMBER", &self.pid_namespace.0, true);
        loader.override_global("PID_NAMESPACE", &self.pid_namespace.1, true);
        loader.override_global("OWNER", &self.owner, true);
    }

    /// Loads the programs on exec and exit.
    pub(super) fn load_raw(object: &mut Object) -> Result<(), KernelError> {
        ["process_exec", "process_exit"].iter().try_for_each(|program| object.load_raw(program))
    }

    /// Loads the program on fork.
    pub(super) fn load_fork(object: &mut Object) -> Result<(), KernelError> {
        object.load_event("process_fork")
    }

    fn attach(&self, object: &mut Object) -> Result<bool, KernelError> {
        object.attach_raw("process_exec", "sched_process_exec")?;
        // First, as the other one forgets the thread. Without it, functions that a thread left at its end are open.
        let left_at_end = object
            .load_raw(ENGINE_THREAD_END)
            .and_then(|()| object.attach_raw(ENGINE_THREAD_END, "sched_process_exit"));
        if let Err(error) = left_at_end {
            log::info!("functions that threads leave by their end stay open: {error}");
        }
        object.attach_raw("process_exit", "sched_process_exit")?;
        if self.pid_namespace.0 != 0 {
            object.load_raw("raw_process_fork")?;
            object.attach_raw("raw_process_fork", "sched_process_fork")?;
            return Ok(true);
        }
        let follows_forks = self.child_offset.is_some();
        if follows_forks {
            object.attach_event("process_fork", "sched", "sched_process_fork")?;
        }
        Ok(follows_forks)
    }
}

/// Describes the PID namespace that we run in, where it is not the host's.
fn pid_namespace(btf: Option<&Btf>) -> Result<(u32, PidNamespace), KernelError> {
    let own = fs::read_link("/proc/self").ok().and_then(|name| name.to_str()?.parse().ok());
    if own.is_some_and(|own: u32| own != std::process::id()) {
        return Err(KernelError::ForeignProc);
    }
    let number = fs::metadata("/proc/self/ns/pid").map_or(u64::from(OF_HOST), |found| found.ino());
    let number = u32::try_from(number).unwrap_or(OF_HOST);
    if number == OF_HOST {
        return Ok((0, PidNamespace::default()));
    }
    let described = btf.and_then(|btf| {
        let (id, namespace) =
            (btf.offset("upid", "nr")?, btf.pointer_offset("upid", "ns", 1, "pid_namespace")?);
        let offsets = PidNamespace {
            thread_pid: btf.pointer_offset("task_struct", "thread_pid", 1, "pid")?,
            group_leader: btf.pointer_offset("task_struct", "group_leader", 1, "task_struct")?,
            level: btf.offset("pid", "level")?,
            numbers: btf.offset("pid", "numbers")?,
            // It ends with the pointer or with the id, and is aligned as the pointer.
            number_size: (namespace + 8).max(id + 4).next_multiple_of(8),
            id,
            namespace,
            namespace_number: btf.offset("pid_namespace", "ns")? + btf.offset("ns_common", "inum")?,
        };
        Some((number, offsets))
    });
    described.ok_or(KernelError::PidNamespace)
}

impl Kernel {
    /// Takes the ring in which each stop of a command is a record.
    ///
    /// # Errors
    /// When the object lacks it, or the kernel refuses.
    pub(in crate::live) fn take_stops(&mut self) -> Result<RingBuf<MapData>, KernelError> {
        self.object.take_ring("STOPS")
    }

    /// Attaches to exec and exit, and to fork when the kernel describes it; returns whether forks are followed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn attach_process_events(&mut self) -> Result<bool, KernelError> {
        self.processes.attach(&mut self.object)
    }

    /// Starts counting the marks of a process.
    ///
    /// # Errors
    /// When the table of targets is full.
    pub(crate) fn add_target(&mut self, pid: u32) -> Result<(), KernelError> {
        self.set_target(pid, TARGET)
    }

    /// Sets how a process is traced: [`TARGET`], or [`TARGET_TO_HOLD`](nntrace_common::record::TARGET_TO_HOLD).
    ///
    /// # Errors
    /// When the table of targets is full.
    pub(crate) fn set_target(&mut self, pid: u32, how: u8) -> Result<(), KernelError> {
        let map = self.object.map_mut("TARGETS").ok_or(KernelError::Missing("map TARGETS"))?;
        let mut targets: HashMap<_, u32, u8> =
            map.try_into().map_err(map_error("use the table of targets"))?;
        targets.insert(pid, how, 0).map_err(map_error("add to the table of targets"))
    }

    /// Stops counting the marks of a process.
    ///
    /// # Errors
    /// When the table cannot be used.
    pub(crate) fn remove_target(&mut self, pid: u32) -> Result<(), KernelError> {
        let map = self.object.map_mut("TARGETS").ok_or(KernelError::Missing("map TARGETS"))?;
        let mut targets: HashMap<_, u32, u8> =
            map.try_into().map_err(map_error("use the table of targets"))?;
        // An entry that is already gone needs no removal.
        let _ = targets.remove(&pid);
        Ok(())
    }
}
