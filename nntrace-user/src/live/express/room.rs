//! Room for lanes: bytes that the threads of a process may take for them, within the limits of its memory cgroups and its own.
//!
//! Lanes are charged to the process that makes them, all of whose cgroup may be killed for them, or refused memory later.
//! It is granted a part of what is left to it.

use std::{fs, path::Path};

use nntrace_common::express::{HEADER_BYTES, MIN_RING_BYTES};
use rustc_hash::FxHashMap;

use super::lane_thread::LaneThread;

/// Divisor of the room: lanes of one library may take a sixteenth of it.
const PART: u64 = 16;
/// Bytes of room below which a process is to have no lanes at all: threads make the first ones unasked, and what finds a ring full
/// that cannot grow may be lost, while marks of threads without lanes are not.
const LEAST: u64 = 256 << 20;
/// Time between two looks at the room of processes, ns.
const LOOK_NS: u64 = 500_000_000;
/// Bits of a lane's key that count the lanes of a library.
const KEY_BITS: u32 = 28;

/// Bytes that are granted to the lanes of processes.
#[derive(Default)]
pub(super) struct Grants {
    /// Bytes for which a library may have more lanes than it has, by process.
    parts: FxHashMap<u32, u64>,
    /// Time of the next look, ns.
    next_look: u64,
}

impl Grants {
    /// Grants bytes to the lanes of a process, which has got a new one.
    pub(super) fn grant(&mut self, tgid: u32, threads: &FxHashMap<u32, LaneThread>) {
        let others = self.parts.len() as u64;
        let part = *self.parts.entry(tgid).or_insert_with(|| room(tgid) / PART / (others + 1));
        grant(tgid, part, threads);
    }

    /// Looks at the room of processes from time to time, and grants more or less.
    pub(super) fn review(&mut self, now: u64, threads: &FxHashMap<u32, LaneThread>) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_NS;
        self.parts.retain(|tgid, _| threads.values().any(|thread| thread.tgid == *tgid));
        let processes = self.parts.len() as u64;
        for (tgid, part) in &mut self.parts {
            *part = room(*tgid) / PART / processes;
            grant(*tgid, *part, threads);
        }
    }
}

/// Writes into all lanes of a process what those of their libraries may take: what they have, and a part of the room.
fn grant(tgid: u32, part: u64, threads: &FxHashMap<u32, LaneThread>) {
    let rings = || threads.values().filter(|thread| thread.tgid == tgid).flat_map(LaneThread::rings);
    let mut taken = FxHashMap::<u64, u64>::default();
    for ring in rings().filter(|ring| !ring.is_closed()) {
        *taken.entry(ring.key >> KEY_BITS).or_default() += ring.mapped_bytes() as u64;
    }
    let first = (HEADER_BYTES + MIN_RING_BYTES) as u64;
    for ring in rings() {
        ring.grant(taken.get(&(ring.key >> KEY_BITS)).map_or(first, |taken| taken.saturating_add(part)));
    }
}

/// Whether threads of a process may make lanes.
pub(super) fn has_room(pid: u32) -> bool {
    room(pid) >= LEAST
}

/// Returns the bytes that a process could still take, as far as is known.
fn room(pid: u32) -> u64 {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().map(|line| group_room(Path::new("/sys/fs/cgroup"), line));
    of_groups.chain([machine_room(), address_room(pid)]).flatten().min().unwrap_or(0)
}

/// Returns the least room of a cgroup, a line of `/proc/PID/cgroup`, and those around it; `None` for one without limits. A
/// cgroup that is not visible from here, such as another container's, counts as having no room.
fn group_room(root: &Path, line: &str) -> Option<u64> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let (root, limits, current, inactive) = if controllers.is_empty() {
        // Without cgroup v2 mounted here, memory is limited by v1.
        if !root.join("cgroup.controllers").exists() {
            return None;
        }
        (root.to_owned(), &["memory.max", "memory.high"][..], "memory.current", "inactive_file ")
    } else if controllers.split(',').any(|name| name == "memory") {
        if !root.join("memory").is_dir() {
            return None;
        }
        (root.join("memory"), &["memory.limit_in_bytes"][..], "memory.usage_in_bytes", "total_inactive_file ")
    } else {
        return None;
    };
    let group = root.join(path.trim_start_matches('/'));
    // The path is relative to the root of our own cgroup namespace.
    let is_outside = path.split('/').any(|name| name == "..");
    if is_outside || (path != "/" && !group.is_dir()) {
        return Some(0);
    }
    let around = group.ancestors().take_while(|folder| folder.starts_with(&root));
    let rooms = around.filter_map(|folder| {
        let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let limit = limits.iter().filter_map(|file| number(file)).min()?;
        // The kernel drops pages of files that nobody uses before it refuses memory.
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let unused = stat.lines().find_map(|line| line.strip_prefix(inactive)?.parse::<u64>().ok());
        let used = number(current).unwrap_or(limit).saturating_sub(unused.unwrap_or(0));
        Some(limit.saturating_sub(used))
    });
    rooms.min()
}

/// Returns the room of the machine.
fn machine_room() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns the room of a process in its address space; `None` where that is not limited.
fn address_room(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit = limit.split_whitespace().next()?.parse::<u64>().ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(limit.saturating_sub(kibibytes(&status, "VmSize:")?))
}

/// Returns the bytes of a line `NAME: NUMBER kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
    }

    #[test]
    fn the_room_of_a_cgroup_is_the_least_around_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(group_room(root, "0::/a/b"), None, "the second version is not mounted");
        write(root, &[("cgroup.controllers", "memory")]);
        assert_eq!(group_room(root, "0::/a/b"), Some(0));
        write(
            &root.join("a/b"),
            &[("memory.max", "max\n"), ("memory.high", "max\n"), ("memory.current", "7\n")],
        );
        assert_eq!(group_room(root, "0::/a/b"), None);
        write(
            &root.join("a"),
            &[("memory.max", "1000\n"), ("memory.high", "max\n"), ("memory.current", "900\n")],
        );
        assert_eq!(group_room(root, "0::/a/b"), Some(100));
        write(&root.join("a"), &[("memory.stat", "anon 500\ninactive_file 300\n")]);
        assert_eq!(group_room(root, "0::/a/b"), Some(400));
        write(&root.join("a/b"), &[("memory.high", "50\n")]);
        assert_eq!(group_room(root, "0::/a/b"), Some(43));
        write(&root.join("a/b"), &[("memory.current", "70\n")]);
        assert_eq!(group_room(root, "0::/a/b"), Some(0));
        assert_eq!(group_room(root, "0::/"), None);
        // The first version.
        write(&root.join("memory/a"), &[("memory.limit_in_bytes", "64"), ("memory.usage_in_bytes", "60")]);
        assert_eq!(group_room(root, "9:cpu,memory:/a"), Some(4));
        assert_eq!(group_room(root, "9:cpu:/a"), None);
        // From a cgroup namespace of our own.
        assert_eq!(group_room(root, "9:cpu,memory:/../../a"), Some(0));
        assert_eq!(group_room(root, "9:cpu,memory:/b"), Some(0));
        assert_eq!(group_room(root, "9:cpu,memory:/"), None);
    }

    #[test]
    fn sizes_in_kibibytes_are_read() {
        assert_eq!(kibibytes("A:  1 kB\nVmSize:\t  20 kB\n", "VmSize:"), Some(20 << 10));
        assert_eq!(kibibytes("VmSize: many", "VmSize:"), None);
        assert!(machine_room().is_some_and(|room| room > 0));
        assert!(room(std::process::id()) > 0);
    }
}
