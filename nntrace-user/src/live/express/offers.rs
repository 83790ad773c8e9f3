//! Offers of lanes to the targets: the semaphores that we raise in their processes.
//!
//! A program writes to lanes only while its semaphore is 1: then one collector is there, which reads them. A collector that
//! cannot be sure to be the only one raises it to 2. It is sure if it holds the lock of the process, nobody else had raised the
//! semaphore before, and no lease of a former collector can still hold.
//!
//! The lock is one on the memory of the process in `/proc`: only who may read that can take it, and whoever sees the same
//! `/proc` sees it. A collector in a container has another `/proc`: it is known by the semaphore.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    os::unix::fs::FileExt as _,
    path::Path,
    thread,
    time::Duration,
};

use nix::fcntl::{Flock, FlockArg};
use nntrace_common::express::{LANE_NAME, LEASE_NS, offsets};

use super::{ring::open_lane, room::has_room};

use crate::{
    live::{
        clock,
        kernel::{
            Kernel, KernelError,
            lanes::{LaneInstruction, LaneProbe, raise_semaphore},
        },
        target::{LaneFunction, LanePoint, Object, ObjectId, own_writable, search_file},
    },
    model::plurals::one_or_many,
};

/// Time between two looks at whether processes are under seccomp, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// Looks at a semaphore until it is taken for that of a collector that stays.
const END_LOOKS: u32 = 20;
/// Pause between two of them: the kernel removes a probe in some ms.
const END_PAUSE: Duration = Duration::from_millis(10);

/// Semaphores that are raised.
pub(in crate::live) struct Offers {
    /// Whether lanes are read; if not, semaphores are raised so that no thread writes to a lane.
    reads_lanes: bool,
    processes: HashMap<u32, Process>,
    /// Processes in which none is raised although that was possible, by the reason.
    failures: BTreeMap<String, BTreeSet<u32>>,
    /// Time of the next look at seccomp, ns.
    next_look: u64,
}

/// Semaphores of one process.
struct Process {
    /// Begin of the process, in clock ticks: another process may get its id.
    start: u64,
    /// Lock that makes us the only collector; `None` while another one has it.
    lock: Option<Flock<fs::File>>,
    /// Time from which on no lease of another collector holds, ns; `None` while that is not known.
    alone_from: Option<u64>,
    /// Number of raises that each semaphore had before ours, as the process was forked by one that we raised them in.
    inherited: u16,
    /// Whether a collector that does not see our lock was there first.
    has_another: bool,
    /// Whether it has come under seccomp.
    is_confined: bool,
    /// Probes by file and offset of the function.
    files: HashMap<(ObjectId, u64), File>,
}

/// Probes in one file of a process.
struct File {
    _offers: LaneProbe,
    /// Second probe, while we may not be the only collector.
    guard: Option<LaneProbe>,
}

impl Offers {
    /// Creates an empty state. A collector that reads no lanes raises semaphores twice: then all marks take the probes, for it and
    /// for any other collector.
    pub(in crate::live) fn new(reads_lanes: bool) -> Self {
        Self { reads_lanes, processes: HashMap::new(), failures: BTreeMap::new(), next_look: 0 }
    }

    /// Raises the semaphores of a process in the files that it maps, as far as they have any. To be called again whenever
    /// it may have mapped others, and from time to time.
    pub(in crate::live) fn offer(
        &mut self,
        kernel: &mut Kernel,
        pid: u32,
        mapped: &[Object],
        functions: &[&LaneFunction],
    ) {
        let has_function =
            |function: &&LaneFunction| mapped.iter().any(|object| object.id() == function.object);
        let functions: Vec<_> = functions.iter().copied().filter(has_function).collect();
        let Some(start) = (!functions.is_empty()).then(|| start_of(pid)).flatten() else { return };
        if self.processes.get(&pid).is_some_and(|process| process.start != start) {
            self.processes.remove(&pid);
        }
        if !self.processes.contains_key(&pid) {
            let short = || {
                (!has_room(pid)).then(|| {
                    "too little memory is available to it, or its memory cgroup is not visible from here"
                        .to_owned()
                })
            };
            if self.reads_lanes
                && let Some(reason) = why_not(pid).or_else(short)
            {
                self.failures.entry(reason).or_default().insert(pid);
                return;
            }
            let inherited = parent_of(pid).and_then(|parent| self.processes.get(&parent));
            let inherited = inherited.map_or(0, |parent| if parent.is_guarded() { 2 } else { 1 });
            self.processes.insert(pid, Process::new(pid, start, inherited));
        }
        self.leave_confined(pid);
        let Some(process) = self.processes.get_mut(&pid).filter(|process| !process.is_confined) else {
            return;
        };
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut is_alone = self.reads_lanes && process.is_alone(pid, clock::now());
        for function in functions {
            let place = (function.object, function.offset);
            if let Some(file) = process.files.get_mut(&place) {
                if is_alone {
                    file.guard = None;
                }
                continue;
            }
            let Some(address) = only_copy(&maps, function.object.inode, function.semaphore) else { continue };
            if self.reads_lanes && process.lock.is_some() && stays_raised(pid, address, process.inherited) {
                process.has_another = true;
                is_alone = false;
            }
            let taker = self.reads_lanes.then_some(&mut *kernel);
            match File::probe(taker, pid, function, is_alone) {
                Ok(file) => {
                    let whether = if self.reads_lanes { "may" } else { "do not" };
                    log::info!(
                        "threads of process {pid} {whether} use lanes in {}",
                        function.display_path.display()
                    );
                    process.files.insert(place, file);
                }
                Err(_) if has_ended(pid) => {}
                // Threads take the probe unless another collector reads their lanes.
                Err(_) if !self.reads_lanes && !stays_raised(pid, address, 0) => {}
                Err(reason) => _ = self.failures.entry(reason).or_default().insert(pid),
            }
        }
    }

    /// Looks where we may have become the only collector, and once a second which processes have come under seccomp.
    pub(in crate::live) fn review(&mut self) {
        if !self.reads_lanes {
            return;
        }
        let now = clock::now();
        for (&pid, process) in &mut self.processes {
            if process.is_guarded() && process.is_alone(pid, now) {
                process.files.values_mut().for_each(|file| file.guard = None);
            }
        }
        if now >= self.next_look {
            self.next_look = now + LOOK_NS;
            for pid in self.processes.keys().copied().collect::<Vec<_>>() {
                self.leave_confined(pid);
            }
        }
    }

    /// Lowers the semaphores of processes that have come under seccomp: their threads are not to make system calls for
    /// lanes.
    fn leave_confined(&mut self, pid: u32) {
        if self.reads_lanes
            && self.processes.get(&pid).is_some_and(|process| !process.is_confined)
            && let Some(reason) = why_not(pid)
        {
            self.failures.entry(reason).or_default().insert(pid);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.is_confined = true;
                process.files.clear();
            }
        }
    }

    /// Lowers the semaphores of a process that is gone, or that runs another program.
    pub(in crate::live) fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Lowers all semaphores.
    pub(in crate::live) fn end(&mut self) {
        self.processes.clear();
    }

    /// Returns notes on processes that get no lanes, or, of a collector that reads none, that may use another one's.
    pub(in crate::live) fn notes(&self) -> impl Iterator<Item = String> {
        self.failures.iter().map(|(reason, pids)| {
            let count = pids.len() as u64;
            let processes = one_or_many(count, "process", "processes");
            if self.reads_lanes {
                format!("{count} {processes} without an express lane: {reason}")
            } else {
                format!(
                    "marks of {count} {processes} are missing here: another profiler reads their express lanes ({reason})"
                )
            }
        })
    }
}

impl Process {
    fn new(pid: u32, start: u64, inherited: u16) -> Self {
        let lock = lock(pid);
        // Lanes that are there now may be of a collector that was killed: they are written to until its leases end.
        let alone_from = lock.is_some().then(|| last_lease(pid, clock::now()));
        Self {
            start,
            lock,
            alone_from,
            inherited,
            has_another: false,
            is_confined: false,
            files: HashMap::new(),
        }
    }

    /// Whether a second probe keeps it from using lanes.
    fn is_guarded(&self) -> bool {
        self.files.values().any(|file| file.guard.is_some())
    }

    /// Whether no other collector reads lanes of the process.
    fn is_alone(&mut self, pid: u32, now: u64) -> bool {
        if self.lock.is_none() {
            self.lock = lock(pid);
            self.alone_from = self.lock.is_some().then(|| now + LEASE_NS);
        }
        !self.has_another && self.alone_from.is_some_and(|from| now >= from)
    }
}

impl File {
    /// Probes the function; if we may not be alone, at another instruction first, so that the semaphore never is 1. The kernel takes
    /// the offers, if they are to be taken.
    fn probe(
        kernel: Option<&mut Kernel>,
        pid: u32,
        function: &LaneFunction,
        is_alone: bool,
    ) -> Result<Self, String> {
        let LaneFunction { path, offset, semaphore, .. } = function;
        let at = |offset| LaneInstruction { offset, semaphore: *semaphore };
        let guard = (!is_alone).then(|| raise_semaphore(pid, path, at(offset.saturating_add(GUARD_AT))));
        let guard = guard.transpose().map_err(|error| error.to_string())?;
        let at = at(offset.saturating_add(OFFER_AT));
        let offers = match kernel {
            Some(kernel) => kernel.take_offers(Some(pid), path, at),
            None => raise_semaphore(pid, path, at),
        };
        Ok(Self { _offers: offers.map_err(|error| error.to_string())?, guard })
    }
}

/// Offset in the offering function of the instruction that is probed: that which all kernels probe without harm and
/// without a single step, as in a mark function.
const OFFER_AT: u64 = if cfg!(target_arch = "aarch64") { 4 } else { 5 };
/// Offset of the instruction that a collector probes as well which may not be the only one.
const GUARD_AT: u64 = if cfg!(target_arch = "aarch64") { 0 } else { 6 };

/// Raises the semaphore of a library in all processes that map it, and takes the offers of their threads.
///
/// # Errors
/// When the kernel refuses, or the library has no such function.
pub(in crate::live) fn take_everywhere(
    kernel: &mut Kernel,
    library: &Path,
) -> Result<Vec<LaneProbe>, KernelError> {
    let refused = |reason: String| KernelError::Attach { point: library.display().to_string(), reason };
    let found = search_file(library, &[]).map_err(|error| refused(error.to_string()))?;
    if found.lanes.is_empty() {
        return Err(refused("it has no function that offers lanes".to_owned()));
    }
    let instruction = |point: &LanePoint| LaneInstruction {
        offset: point.offset.saturating_add(OFFER_AT),
        semaphore: point.semaphore,
    };
    found.lanes.iter().map(|point| kernel.take_offers(None, library, instruction(point))).collect()
}

/// Takes the lock of a process, which the kernel frees when we end, however that is.
fn lock(pid: u32) -> Option<Flock<fs::File>> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    Flock::lock(memory, FlockArg::LockExclusiveNonblock).ok()
}

/// Whether a semaphore is raised more often than we know of, and not only by a collector that is ending.
fn stays_raised(pid: u32, address: u64, known: u16) -> bool {
    let is_raised = || semaphore(pid, address).is_none_or(|raised| raised > known);
    (0..END_LOOKS).all(|look| {
        if look > 0 {
            thread::sleep(END_PAUSE);
        }
        is_raised()
    })
}

/// Returns how often a semaphore is raised in a process; `None` if it cannot be read.
fn semaphore(pid: u32, address: u64) -> Option<u16> {
    let mut raised = [0; 2];
    fs::File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut raised, address).ok()?;
    Some(u16::from_ne_bytes(raised))
}

/// Returns the time (ns) until which a process may write to the lanes that it maps at `now`; 0 without any.
fn last_lease(pid: u32, now: u64) -> u64 {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    latest(&maps, now, |range| lease(&format!("/proc/{pid}/map_files/{range}")))
}

/// Returns the latest lease in the lanes among mappings: 0 where a collector that ended on its own has left none.
fn latest(maps: &[u8], now: u64, lease: impl Fn(&str) -> io::Result<u64>) -> u64 {
    let name = format!("/memfd:{LANE_NAME} (deleted)");
    let lanes = maps.split(|&byte| byte == b'\n').filter(|line| line.ends_with(name.as_bytes()));
    let ranges = lanes.filter_map(|line| str::from_utf8(line).ok()?.split(' ').next());
    // What is not known, or is later than any lease, may be the latest one.
    let most = now + LEASE_NS;
    ranges.map(|range| lease(range).map_or(most, |lease| lease.min(most))).max().unwrap_or(0)
}

/// Reads the lease in a lane.
fn lease(path: &str) -> io::Result<u64> {
    let mut lease = [0; 8];
    open_lane(path, false).map_err(io::Error::other)?.read_exact_at(&mut lease, offsets::LEASE as u64)?;
    Ok(u64::from_le_bytes(lease))
}

/// Returns the address of the data at an offset of a file, if a process can write to one copy of it.
///
/// The kernel raises the semaphore in the first mapping of that part of the file that can be written to. That need not be
/// where the program reads it: lld puts data after what is protected after relocation, and the file's page at the border is
/// mapped for both. Once the loader has protected the former there is one copy.
///
/// Source: `valid_ref_ctr_vma` and `find_ref_ctr_vma` in `kernel/events/uprobes.c`.
fn only_copy(maps: &[u8], inode: u64, offset: u64) -> Option<u64> {
    let mut copies = own_writable(maps).filter(|mapping| {
        let length = mapping.end - mapping.start;
        mapping.inode == inode && offset.checked_sub(mapping.offset).is_some_and(|within| within < length)
    });
    let only = copies.next()?;
    copies.next().is_none().then(|| only.start + (offset - only.offset))
}

/// Returns the reason why a process gets no lanes.
fn why_not(pid: u32) -> Option<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let is_confined = |status: &str| {
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        mode.is_some_and(|mode| mode.trim() != "0")
    };
    let mut statuses =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    // A filter may end the process at the system calls that a lane needs.
    statuses.any(|status| is_confined(&status)).then(|| {
        "they are under seccomp, at least one thread, and may not make the system calls for one".to_owned()
    })
}

/// Whether a process has ended, even if its parent has not taken note of it. The main thread may have ended before others.
pub(super) fn has_ended(pid: u32) -> bool {
    let is_over = |state: String| matches!(&*state, "Z" | "X");
    let others =
        || field_of(pid, THREADS).and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 1);
    field_of(pid, STATE).is_none_or(|state| is_over(state) && !others())
}

/// Returns the parent of a process.
fn parent_of(pid: u32) -> Option<u32> {
    field_of(pid, PARENT)?.parse().ok()
}

/// Returns the begin of a process, in clock ticks after the system's.
fn start_of(pid: u32) -> Option<u64> {
    field_of(pid, START)?.parse().ok()
}

/// Fields of `/proc/PID/stat`, counted from the first after the name.
const STATE: usize = 0;
const PARENT: usize = 1;
const THREADS: usize = 17;
const START: usize = 19;

/// Returns a field of `/proc/PID/stat`; `None` if there is no such process.
fn field_of(pid: u32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(number).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_the_lock_of_a_process() {
        let pid = std::process::id();
        let first = lock(pid);
        assert!(first.is_some() && lock(pid).is_none());
        drop(first);
        assert!(lock(pid).is_some());
    }

    #[test]
    fn a_semaphore_is_raised_when_it_has_one_copy() {
        let early = "61000-64000 rw-p 0005c000 fe:01 7 /usr/bin/app\n\
                     64000-65000 rw-p 0005f000 fe:01 7 /usr/bin/app\n\
                     65000-66000 rw-p 0005f000 fe:01 8 /usr/bin/other\n";
        let inside = early.replace("61000-64000", "61000-65000");
        let protected = inside.replace("61000-65000 rw-p", "61000-65000 r--p");
        for (maps, offset, expected) in [
            (early, 0x5_fcf8, Some(0x6_4cf8)),
            (&inside, 0x5_fcf8, None),
            (&protected, 0x5_fcf8, Some(0x6_4cf8)),
            (&inside, 0x5_ecf8, Some(0x6_3cf8)),
            (&protected, 0x5_ecf8, None),
            ("", 0x5_fcf8, None),
        ] {
            assert_eq!(only_copy(maps.as_bytes(), 7, offset), expected, "{offset:#x} of {maps}");
        }
    }

    #[test]
    fn the_latest_lease_in_the_lanes_of_a_process_holds() {
        let lane = |range: &str| format!("{range} rw-s 00000000 00:01 7 /memfd:{LANE_NAME} (deleted)\n");
        let maps = format!("61000-62000 rw-p 00000000 fe:01 7 /usr/bin/app\n{}{}", lane("a-b"), lane("c-d"));
        let found = |lease: fn(&str) -> io::Result<u64>| latest(maps.as_bytes(), 100, lease);
        assert_eq!(found(|range| Ok(if range == "c-d" { 107 } else { 0 })), 107);
        assert_eq!(found(|_| Ok(0)), 0);
        // No program makes another one believe that it is never alone.
        assert_eq!(found(|_| Ok(u64::MAX)), 100 + LEASE_NS);
        assert_eq!(found(|_| Err(io::ErrorKind::PermissionDenied.into())), 100 + LEASE_NS);
        assert_eq!(latest(b"61000-62000 rw-p 00000000 fe:01 7 /usr/bin/app\n", 100, |_| Ok(107)), 0);
    }

    #[test]
    fn the_lease_in_a_lane_is_read() {
        let memory = nix::sys::memfd::memfd_create(LANE_NAME, nix::sys::memfd::MFdFlags::empty()).unwrap();
        let memory = fs::File::from(memory);
        memory.write_all_at(&7_u64.to_le_bytes(), offsets::LEASE as u64).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory));
        assert_eq!(lease(&path).unwrap(), 7);
        assert!(lease("/proc/self/exe").is_err() && lease("/proc/self/fd/-1").is_err());
    }
}
