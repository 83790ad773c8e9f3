//! Tracks of a trace: which thread or process each belongs to.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::perfetto_schema::TrackDescriptor;

/// Tracks that are kept at most.
const MOST: usize = 1 << 18;
/// Bytes of a name at most.
const LONGEST_NAME: usize = 4096;
/// Tracks around a track at most; those of a circle have no end.
const DEEPEST: usize = 32;

/// Tracks, by number.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: FxHashMap<u64, Track>,
    /// Names of processes.
    processes: FxHashMap<u32, Bytes>,
    /// Descriptions that there was no room for.
    pub(super) left_out: u64,
}

#[derive(Debug, Default)]
struct Track {
    parent: Option<u64>,
    /// Process of its thread, if it is known, and the number of the thread in the trace.
    thread: Option<(Option<u32>, i64)>,
    /// Name of that thread.
    comm: Bytes,
    process: Option<u32>,
    name: Bytes,
    counter: Option<Counter>,
}

/// Counter of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// Factor of its values.
    pub(super) multiplier: i64,
    /// Whether its values are differences.
    pub(super) is_incremental: bool,
}

/// Owner of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Owner {
    /// Process; 0 where the track has none.
    pub(super) pid: u32,
    /// Thread; the main one for tracks of processes.
    pub(super) tid: u32,
    /// Whether the track is the thread's own, whose slices are what the thread does.
    pub(super) is_of_thread: bool,
}

impl Tracks {
    /// Takes a description. Later ones of one number add what those before do not have.
    pub(super) fn describe(&mut self, descriptor: &TrackDescriptor) {
        let uuid = descriptor.uuid.unwrap_or(0);
        if self.all.len() >= MOST && !self.all.contains_key(&uuid) {
            self.left_out += 1;
            return;
        }
        let track = self.all.entry(uuid).or_default();
        let number = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
        if let Some(thread) = &descriptor.thread
            && let Some(tid) = thread.tid
        {
            track.thread = Some((number(thread.pid.map(i64::from)), tid));
            if let Some(name) = &thread.thread_name {
                track.comm = Bytes::copy_from_slice(&name[..name.len().min(LONGEST_NAME)]);
            }
        }
        if let Some(process) = &descriptor.process {
            track.process = number(process.pid.map(i64::from)).or(track.process);
            if let (Some(pid), Some(name)) = (track.process, &process.process_name) {
                let name = Bytes::copy_from_slice(&name[..name.len().min(LONGEST_NAME)]);
                self.processes.insert(pid, name);
            }
        }
        track.parent = descriptor.parent_uuid.or(track.parent);
        let names = [&descriptor.name, &descriptor.static_name, &descriptor.atrace_name];
        if let Some(name) = names.into_iter().flatten().next() {
            // A copy: a part of a packet would keep all of it.
            track.name = Bytes::copy_from_slice(&name[..name.len().min(LONGEST_NAME)]);
        }
        if let Some(counter) = &descriptor.counter {
            track.counter = Some(Counter {
                multiplier: counter.unit_multiplier.filter(|factor| *factor != 0).unwrap_or(1),
                is_incremental: counter.is_incremental == Some(true),
            });
        }
    }

    /// Returns the owner of a track.
    pub(super) fn owner(&self, uuid: u64) -> Owner {
        let mut at = uuid;
        let mut of_thread = None;
        for _ in 0..DEEPEST {
            let Some(track) = self.all.get(&at) else { break };
            if of_thread.is_none() {
                of_thread = track.thread.map(|(pid, tid)| (pid, tid, at == uuid));
            }
            // A thread without a process is of the one around.
            let pid = of_thread.and_then(|(pid, ..)| pid).or(track.process);
            if let Some(pid) = pid {
                let (tid, is_of_thread) =
                    of_thread.map_or((pid, false), |(_, tid, own)| (thread_number(tid), own));
                return Owner { pid, tid, is_of_thread };
            }
            let Some(parent) = track.parent.filter(|parent| *parent != 0) else { break };
            at = parent;
        }
        of_thread.map_or_else(Owner::default, |(_, tid, is_of_thread)| {
            let tid = thread_number(tid);
            Owner { pid: tid, tid, is_of_thread }
        })
    }

    /// Returns the name of the thread of a track; `None` where its description has none.
    pub(super) fn comm(&self, uuid: u64) -> Option<&[u8]> {
        self.all.get(&uuid).map(|track| &*track.comm).filter(|comm| !comm.is_empty())
    }

    /// Returns the name of a process; `None` where no track has it.
    pub(super) fn process_name(&self, pid: u32) -> Option<&[u8]> {
        self.processes.get(&pid).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// Returns the name of a track.
    pub(super) fn name(&self, uuid: u64) -> &[u8] {
        self.all.get(&uuid).map(|track| &*track.name).unwrap_or_default()
    }

    /// Returns the counter of a track, if it is one.
    pub(super) fn counter(&self, uuid: u64) -> Option<Counter> {
        self.all.get(&uuid)?.counter
    }
}

/// Highest bit: the kernel's ids are below 2^22.
const BEYOND: u32 = 1 << 31;

/// Returns an id for a thread whose own is that of another process's thread in the kernel, as in containers.
pub(super) const fn twin(tid: u32) -> u32 {
    tid | BEYOND
}

/// Returns the id of a thread by its number in a description: the number itself where it can be one of Linux. Others are of
/// programs whose threads have addresses or negative numbers as ids, or 0, which is the kernel's idle thread: they get an id
/// beyond all of the kernel's.
pub(super) fn thread_number(number: i64) -> u32 {
    match u32::try_from(number) {
        Ok(tid) if tid != 0 => tid,
        // The lower half tells the threads of one program apart, as their stacks do.
        _ => (number.cast_unsigned() ^ (number.cast_unsigned() >> 32 << 4)) as u32 | BEYOND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto_schema::{ProcessDescriptor, ThreadDescriptor};

    #[test]
    fn numbers_that_are_no_ids_of_linux_are_beyond_them() {
        assert_eq!(thread_number(7), 7);
        let others = [0, -1, -136_712_896, 1 << 32, (1 << 32) + 7, 0x7f00_1234_5700];
        let ids = others.map(thread_number);
        assert!(ids.iter().all(|tid| *tid >= 1 << 31), "{ids:?}");
        assert!((1..ids.len()).all(|at| !ids[..at].contains(&ids[at])), "{ids:?}");
    }

    #[test]
    fn a_thread_without_a_process_is_of_the_one_around_or_of_its_own() {
        let mut tracks = Tracks::default();
        let thread =
            |tid| Some(ThreadDescriptor { pid: None, tid: Some(tid), thread_name: Some("w".into()) });
        let process = Some(ProcessDescriptor { pid: Some(5), process_name: None });
        tracks.describe(&TrackDescriptor { uuid: Some(1), process, ..TrackDescriptor::default() });
        let parent_uuid = Some(1);
        tracks.describe(&TrackDescriptor {
            uuid: Some(2),
            parent_uuid,
            thread: thread(7),
            ..TrackDescriptor::default()
        });
        tracks.describe(&TrackDescriptor { uuid: Some(3), thread: thread(8), ..TrackDescriptor::default() });
        assert_eq!(tracks.owner(2), Owner { pid: 5, tid: 7, is_of_thread: true });
        assert_eq!(tracks.owner(3), Owner { pid: 8, tid: 8, is_of_thread: true });
        assert_eq!(tracks.comm(3), Some(&b"w"[..]));
    }

    #[test]
    fn the_owner_is_the_nearest_one_around() {
        let mut tracks = Tracks::default();
        let mut describe = |uuid: u64, parent: u64, pid: i32, tid: i64| {
            let thread = ThreadDescriptor { pid: Some(pid), tid: Some(tid), thread_name: None };
            let process = ProcessDescriptor { pid: Some(pid), process_name: None };
            tracks.describe(&TrackDescriptor {
                uuid: Some(uuid),
                parent_uuid: Some(parent),
                process: (pid > 0 && tid == 0).then_some(process),
                thread: (tid > 0).then_some(thread),
                ..TrackDescriptor::default()
            });
        };
        describe(1, 0, 7, 0);
        describe(2, 1, 7, 8);
        describe(3, 2, 0, 0);
        describe(4, 3, 0, 0);
        describe(5, 1, 0, 0);
        describe(6, 6, 0, 0);
        let thread = Owner { pid: 7, tid: 8, is_of_thread: false };
        assert_eq!(tracks.owner(2), Owner { is_of_thread: true, ..thread });
        assert_eq!([3, 4].map(|uuid| tracks.owner(uuid)), [thread; 2]);
        assert_eq!(tracks.owner(5), Owner { pid: 7, tid: 7, is_of_thread: false });
        assert_eq!([6, 9].map(|uuid| tracks.owner(uuid)), [Owner::default(); 2]);
    }
}
