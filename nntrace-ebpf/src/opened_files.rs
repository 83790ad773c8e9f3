//! Files that traced processes open: at the end of the system call, and at the exec of a program.
//!
//! At the end of a call its path is in memory for sure, as the kernel has just read it. The path that the file really has is
//! followed from the open file to the root; of a file that was not opened, the folder that its path is relative to.

use core::{mem::offset_of, slice};

use aya_ebpf::{
    bindings::{BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_probe_read_kernel_str, bpf_probe_read_user_str},
    },
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use nntrace_common::{
    opened_files::{
        FILE_RING_BYTES, FileCall, FileRecord, FileReport, MOST_NAMES, NAME_BYTES, PATH_BYTES, Place,
        TEXTS_BYTES,
    },
    verifier_bounds::masked,
};

use crate::{
    atomic::add,
    helpers::{current_task, monotonic_ns},
    kernel_memory::read,
    maps::{FILE_REPORT, OPENED_FILES, OPENED_FILES_LOST, PATH_OFFSETS},
    ring,
    system_calls::{self, opening},
    task_ids::Ids,
    traced_processes,
};

/// Descriptor that stands for the working folder (`AT_FDCWD`).
const WORKING_FOLDER: i32 = -100;

/// Flags that `creat` has in `open` (`O_CREAT | O_WRONLY | O_TRUNC`).
const FLAGS_OF_CREAT: u64 = 0o1101;

/// Handles the end of a system call: `(registers, result)`.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub fn file_call(ctx: RawTracePointContext) -> i32 {
    let registers = ctx.arg(0);
    let Some(call) = system_calls::number(registers).ok().and_then(opening_call) else { return 0 };
    let Some(ids) = traced_processes::target() else { return 0 };
    let result = ctx.arg::<i64>(1) as i32;
    // A program that was executed has reported itself.
    if call.executes() && result >= 0 || system_calls::is_of_32_bits(registers) {
        return 0;
    }
    let argument = |number: usize| system_calls::argument_at_end(registers, number).unwrap_or(0);
    let (dirfd, path, flags) = match call {
        FileCall::Open => (WORKING_FOLDER, argument(0), u64::from(argument(1) as u32)),
        FileCall::Creat => (WORKING_FOLDER, argument(0), FLAGS_OF_CREAT),
        FileCall::OpenAt => (argument(0) as i32, argument(1), u64::from(argument(2) as u32)),
        FileCall::OpenAt2 => {
            // The flags are the first member of the structure.
            // SAFETY: the helper checks the address.
            let flags = unsafe { bpf_probe_read_user(argument(2) as *const u64) };
            (argument(0) as i32, argument(1), flags.unwrap_or(0))
        }
        FileCall::Execve => (WORKING_FOLDER, argument(0), 0),
        FileCall::ExecveAt => (argument(0) as i32, argument(1), 0),
    };
    let Some(report) = report(ids, call, dirfd, flags, result) else { return 0 };
    // SAFETY: the helper checks the address, and writes no more than the size it is given, which the buffer has.
    let given = unsafe {
        bpf_probe_read_user_str(report.texts.as_mut_ptr().cast(), PATH_BYTES as u32, path as *const _)
    };
    // Without an error, it includes the NUL.
    let given = if given > 0 { masked(given.cast_unsigned() as usize, TEXTS_BYTES) } else { 0 };
    report.record.given = given as u32;
    let (place, at) = if result >= 0 {
        (Place::File, system_calls::open_file(u64::from(result.cast_unsigned())).and_then(path_of_file))
    } else if given > 0 && report.texts[0] != b'/' {
        (Place::Folder, folder(dirfd))
    } else {
        (Place::Unknown, Err(0))
    };
    finish(report, place, at, given);
    0
}

/// Handles an exec: `(task, former id of the thread, program)`.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn file_executed(ctx: RawTracePointContext) -> i32 {
    let Some(ids) = traced_processes::target() else { return 0 };
    let Some(report) = report(ids, FileCall::Execve, WORKING_FOLDER, 0, 0) else { return 0 };
    let offsets = PATH_OFFSETS.load();
    let mut given = 0;
    if offsets.are_known != 0
        && let Ok(path) = read::<u64>(ctx.arg(2), offsets.exec_path)
    {
        // SAFETY: the helper checks the address, and writes no more than the size it is given, which the buffer has.
        let length = unsafe {
            bpf_probe_read_kernel_str(report.texts.as_mut_ptr().cast(), PATH_BYTES as u32, path as *const _)
        };
        given = if length > 0 { masked(length.cast_unsigned() as usize, TEXTS_BYTES) } else { 0 };
        report.record.given = given as u32;
    }
    finish(report, Place::File, executable().and_then(path_of_file), given);
    0
}

#[inline(always)]
fn opening_call(number: u64) -> Option<FileCall> {
    match number {
        opening::OPENAT => Some(FileCall::OpenAt),
        #[cfg(bpf_target_arch = "x86_64")]
        opening::OPEN => Some(FileCall::Open),
        opening::OPENAT2 => Some(FileCall::OpenAt2),
        #[cfg(bpf_target_arch = "x86_64")]
        opening::CREAT => Some(FileCall::Creat),
        opening::EXECVE => Some(FileCall::Execve),
        opening::EXECVEAT => Some(FileCall::ExecveAt),
        _ => None,
    }
}

/// Begins the report of a call. Nothing else on this CPU makes one meanwhile: the kernel runs these programs without
/// preemption, and there are no system calls in interrupts.
#[inline(always)]
fn report<'a>(ids: Ids, call: FileCall, dirfd: i32, flags: u64, result: i32) -> Option<&'a mut FileReport> {
    let report = FILE_REPORT.get_ptr_mut(0)?;
    // SAFETY: the pointer comes from the map and is not null.
    let report = unsafe { &mut *report };
    report.record = FileRecord {
        time: monotonic_ns(),
        flags,
        call: call as u32,
        tgid: ids.tgid,
        tid: ids.tid,
        dirfd,
        result,
        given: 0,
        names: 0,
        place: Place::Unknown as u32,
        mount_namespace: mount_namespace().unwrap_or(0),
        reserved: 0,
    };
    Some(report)
}

/// Adds the names on the way to the root, and puts the report into the ring.
#[inline(always)]
fn finish(report: &mut FileReport, place: Place, at: Result<(u64, u64), i32>, given: usize) {
    let mut end = given;
    if let Ok((mount, entry)) = at {
        let named = follow_path(mount, entry, given as u32) as usize;
        if named >= given && named != 0 {
            report.record.names = (named - given) as u32;
            report.record.place = place as u32;
            end = named;
        }
    }
    let length = size_of::<FileRecord>() + masked(end, TEXTS_BYTES);
    const { assert!(offset_of!(FileReport, texts) == size_of::<FileRecord>()) };
    // SAFETY: the record and as much of the texts as is used, or of the room after it.
    let bytes = unsafe { slice::from_raw_parts((&raw const *report).cast::<u8>(), length) };
    let is_half_full = ring::half_full(&raw const OPENED_FILES, FILE_RING_BYTES);
    let wake = if is_half_full { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP };
    if OPENED_FILES.output_untyped::<[u8]>(bytes, u64::from(wake)).is_err()
        && let Some(lost) = OPENED_FILES_LOST.get_ptr_mut(0)
    {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { add(lost, 1) };
    }
}

/// Returns mount and entry of an open file.
#[inline(always)]
fn path_of_file(file: u64) -> Result<(u64, u64), i32> {
    path_at(file, PATH_OFFSETS.load().file_path)
}

/// Returns mount and entry of a folder that the task has open, or works in.
#[inline(always)]
fn folder(descriptor: i32) -> Result<(u64, u64), i32> {
    if descriptor != WORKING_FOLDER {
        return path_of_file(system_calls::open_file(u64::from(descriptor.cast_unsigned()))?);
    }
    let offsets = PATH_OFFSETS.load();
    path_at(read(current_task(), offsets.task_folders)?, offsets.working_folder)
}

/// Returns the number of the task's namespace of mounts.
#[inline(always)]
fn mount_namespace() -> Result<u32, i32> {
    let offsets = PATH_OFFSETS.load();
    if offsets.are_known == 0 {
        return Ok(0);
    }
    let namespaces: u64 = read(current_task(), offsets.task_namespaces)?;
    read(read(namespaces, offsets.mount_namespace)?, offsets.namespace_number)
}

/// Address of the file that the task executes.
#[inline(always)]
fn executable() -> Result<u64, i32> {
    let offsets = PATH_OFFSETS.load();
    read(read(current_task(), offsets.task_memory)?, offsets.executable)
}

/// Returns mount and entry of a path in a structure.
#[inline(always)]
fn path_at(structure: u64, offset: u32) -> Result<(u64, u64), i32> {
    /// No way is known.
    const UNKNOWN: i32 = -1;
    let offsets = PATH_OFFSETS.load();
    if offsets.are_known == 0 {
        return Err(UNKNOWN);
    }
    let path = structure.wrapping_add(u64::from(offset));
    let mount: u64 = read(path, offsets.path_mount)?;
    Ok((mount.wrapping_sub(u64::from(offsets.mount_public)), read(path, offsets.path_entry)?))
}

/// Writes the names from an entry to the root of all mounts into the report that is being made, from a place in its texts on;
/// returns their end, or 0 where the way is too long or cannot be read.
///
/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn follow_path(mount: u64, entry: u64, at: u32) -> u32 {
    let Some(report) = FILE_REPORT.get_ptr_mut(0) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null.
    let texts = unsafe { &raw mut (*report).texts }.cast::<u8>();
    let (mut mount, mut entry, mut at) = (mount, entry, at as usize);
    let offsets = PATH_OFFSETS.load();
    for _ in 0..MOST_NAMES {
        let Ok(parent) = read::<u64>(entry, offsets.entry_parent) else { return 0 };
        if read(mount, offsets.mount_root) == Ok(entry) || parent == entry {
            // The begin of a file system has the name of the place where it is mounted.
            let Ok(outer) = read::<u64>(mount, offsets.mount_parent) else { return 0 };
            if outer == mount {
                return at as u32;
            }
            let Ok(place) = read::<u64>(mount, offsets.mount_point) else { return 0 };
            (mount, entry) = (outer, place);
            continue;
        }
        let Ok(name) = read::<u64>(entry, offsets.entry_name) else { return 0 };
        at = masked(at, TEXTS_BYTES);
        // SAFETY: inside of the texts, which have room for one name more; the helper checks the address.
        let length = unsafe {
            bpf_probe_read_kernel_str(texts.wrapping_add(at).cast(), NAME_BYTES as u32, name as *const _)
        };
        if length <= 0 {
            return 0;
        }
        at += length.cast_unsigned() as usize;
        if at >= TEXTS_BYTES {
            return 0;
        }
        entry = parent;
    }
    0
}
