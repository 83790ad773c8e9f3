//! Probes on the function that offers lanes, with a semaphore, which the kernel raises in a process while one is there.
//!
//! aya knows no probes with a semaphore, so these are perf events of our own, one for each process: a process that is
//! no target never sees its semaphore raised. A library that only targets load has one for all of them.
//!
//! Source: `create_local_trace_uprobe` in `kernel/trace/trace_uprobe.c`, `update_ref_ctr` in `kernel/events/uprobes.c`.

use std::{
    ffi::CString,
    fs, io, mem,
    os::{
        fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya::maps::HashMap;
use aya_obj::generated::perf_event_attr;
use nix::libc;
use nntrace_common::record::{Forwarding, Thread};

use super::{Kernel, KernelError, detaching, error::attach_error};
use crate::live::target::present_name;

/// Program on the function that offers lanes.
const PROGRAM: &str = "lane_offer";
/// Threads whose marks user space accounts at most: each takes it some 7 KiB.
const MOST_THREADS: u64 = 4_096;
/// Readings of a thread's state until two are equal, at most.
const MOST_READS: u32 = 8;
/// Kind of perf events that are uprobes.
const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";
/// Place of the semaphore's offset in an event's configuration; kernels before 4.20 have none.
const SEMAPHORE: &str = "/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset";
/// Place on every kernel so far.
const SEMAPHORE_PLACE: &str = "config:32-63";
const SEMAPHORE_SHIFT: u32 = 32;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_SET_BPF`.
const SET_PROGRAM: libc::Ioctl = 0x4004_2408;

/// Instruction of the offering function, in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct LaneInstruction {
    /// Offset in the file.
    pub(in crate::live) offset: u64,
    /// Offset of the semaphore in the file.
    pub(in crate::live) semaphore: u64,
}

/// Probe on an instruction of the offering function in one process. While it is there, the semaphore is raised, once for
/// each such instruction.
#[derive(Debug)]
pub(in crate::live) struct LaneProbe(Option<OwnedFd>);

impl Drop for LaneProbe {
    fn drop(&mut self) {
        detaching::in_background(self.0.take());
    }
}

impl Kernel {
    /// Allows threads to hand their accounting over.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn allow_lanes(&mut self) -> Result<(), KernelError> {
        self.object.array::<u64>("LANES")?.set(0, MOST_THREADS, 0).map_err(KernelError::writing)
    }

    /// Raises the semaphore of a process, or of all that map the file, and takes the offers that their threads make from then on.
    ///
    /// # Errors
    /// When the kernel refuses, or knows no semaphores (before Linux 4.20).
    pub(in crate::live) fn take_offers(
        &mut self,
        pid: Option<u32>,
        path: &Path,
        at: LaneInstruction,
    ) -> Result<LaneProbe, KernelError> {
        let whose = pid.map_or_else(String::new, |pid| format!(" of process {pid}"));
        let point = format!("the lanes{whose} in {}", present_name(path).display());
        let refused =
            |source| KernelError::Attach { point: point.clone(), reason: io::Error::to_string(&source) };
        let program = self.object.load_function(PROGRAM).map_err(attach_error(&point))?;
        let program = program.fd().map_err(attach_error(&point))?;
        let event = open(pid, path, at).map_err(refused)?;
        // SAFETY: two descriptors that are open; the kernel takes a reference of the program.
        let set = unsafe { libc::ioctl(event.as_raw_fd(), SET_PROGRAM, program.as_fd().as_raw_fd()) };
        nix::errno::Errno::result(set).map_err(io::Error::from).map_err(refused)?;
        Ok(LaneProbe(Some(event)))
    }

    /// Returns a reader of the threads' states of forwarding, by id: `None` for a thread that has ended, unless its last loss
    /// is not in a ring.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(in crate::live) fn forwarding(&self) -> Result<impl Fn(u32) -> Option<Forwarding>, KernelError> {
        let threads: HashMap<_, u32, Thread> = self.object.table("THREADS")?;
        let ended: HashMap<_, u32, Forwarding> = self.object.table("ENDED_LOSING")?;
        Ok(move |tid| {
            let living = || threads.get(&tid, 0).ok().map(|thread| thread.express).filter(Forwarding::is_on);
            // In this order: a thread is put among the ended ones before its state is removed.
            let read = || living().or_else(|| ended.get(&tid, 0).ok());
            // Its programs may be writing it.
            let mut state = read();
            for _ in 0..MOST_READS {
                let again = read();
                if again == state {
                    break;
                }
                state = again;
            }
            state
        })
    }
}

/// Raises the semaphore of a process once more, without any other effect, by a probe on another instruction.
///
/// # Errors
/// As [`Kernel::take_offers`].
pub(in crate::live) fn raise_semaphore(
    pid: u32,
    path: &Path,
    at: LaneInstruction,
) -> Result<LaneProbe, KernelError> {
    open(Some(pid), path, at).map(|event| LaneProbe(Some(event))).map_err(|source| KernelError::Attach {
        point: format!("the lanes of process {pid} in {}", present_name(path).display()),
        reason: source.to_string(),
    })
}

/// Opens a uprobe of one process, or of all. It exists from then on, with the semaphore. For all processes an event is of one
/// CPU, but its program runs on each.
fn open(pid: Option<u32>, path: &Path, at: LaneInstruction) -> io::Result<OwnedFd> {
    let (pid, cpu) = pid.map_or((-1, 0), |pid| (pid.cast_signed(), -1));
    let place = fs::read_to_string(SEMAPHORE)?;
    if place.trim() != SEMAPHORE_PLACE || at.semaphore > u64::from(u32::MAX) {
        return Err(io::Error::other(format!("the semaphore's offset has no place in {}", place.trim())));
    }
    let kind = fs::read_to_string(TYPE)?.trim().parse().map_err(io::Error::other)?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeros are valid for all of its fields, which are numbers.
    let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
    attributes.size = size_of::<perf_event_attr>() as u32;
    attributes.type_ = kind;
    attributes.config = at.semaphore << SEMAPHORE_SHIFT;
    attributes.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
    attributes.__bindgen_anon_4.probe_offset = at.offset;
    // SAFETY: the attributes and the path live through the call, which writes nothing but their size.
    let event =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw mut attributes, pid, cpu, -1, CLOSE_ON_EXEC) };
    let event = nix::errno::Errno::result(event)?;
    // SAFETY: a descriptor that was just opened, and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(event as i32) })
}
