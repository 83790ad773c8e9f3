//! Descriptions of tracks, and the numbers of them all.

use std::io::{self, Write};

use super::packets::write_packet;
use crate::{
    export::{
        ThreadName,
        swimlane::{
            Counters, Group, ThreadTrack,
            layout::{self, ProcessTracks},
        },
    },
    model::Findings,
    perfetto_schema::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor},
};

/// Order of the children of a track: by their ranks. Also of processes, and of threads.
const BY_RANK: i32 = 3;
const EXPLICIT: i32 = 1;
/// Merging of tracks of one name: none.
const NEVER_MERGED: i32 = 2;

/// Returns the number of a process's track.
pub(super) fn process_uuid(pid: u32) -> u64 {
    uuid("process", &[&pid.to_le_bytes()])
}

/// Returns the number of one of a thread's tracks.
pub(super) fn thread_uuid(ThreadTrack { pid, tid, lane }: ThreadTrack) -> u64 {
    uuid("thread", &[&pid.to_le_bytes(), &tid.to_le_bytes(), &lane.to_le_bytes()])
}

/// Returns the number of a counter's track, by the counter's name.
pub(super) fn counter_uuid(name: &str) -> u64 {
    uuid("counter", &[name.as_bytes()])
}

/// Returns the number of a track, which depends on what it is of only: the hash FNV-1a.
fn uuid(kind: &str, parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in kind.bytes().chain([0]).chain(parts.iter().copied().flatten().copied()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    // 0 is the root.
    hash.max(1)
}

/// Returns a packet that describes a track.
fn described(track: TrackDescriptor) -> TracePacket {
    TracePacket { track_descriptor: Some(track), ..TracePacket::default() }
}

/// Returns the description of a further track of a thread.
pub(super) fn further(track: ThreadTrack) -> TracePacket {
    described(TrackDescriptor {
        uuid: Some(thread_uuid(track)),
        parent_uuid: Some(thread_uuid(ThreadTrack { lane: 0, ..track })),
        name: Some("sections that overlap".into()),
        sibling_merge_behavior: Some(NEVER_MERGED),
        ..TrackDescriptor::default()
    })
}

/// Writes the descriptions of all tracks: processes with their threads, then counters.
pub(super) fn write(
    out: &mut impl Write,
    findings: &Findings<'_>,
    threads: &[ThreadName],
    counters: &Counters<'_>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut put = |track| {
        buffer.clear();
        write_packet(out, &described(track), &mut buffer)
    };
    put(TrackDescriptor {
        uuid: Some(0),
        child_ordering: Some(BY_RANK),
        process_ordering: Some(EXPLICIT),
        thread_ordering: Some(EXPLICIT),
        ..TrackDescriptor::default()
    })?;
    let processes = layout::processes(findings, threads);
    let count = processes.len();
    for (ProcessTracks { pid, name, threads }, rank) in processes.into_iter().zip(0..) {
        put(TrackDescriptor {
            uuid: Some(process_uuid(pid)),
            process: Some(ProcessDescriptor {
                pid: Some(pid.cast_signed()),
                process_name: name.map(|name| name.to_owned().into()),
            }),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        })?;
        for (ThreadName { tid, name, .. }, rank) in threads.into_iter().zip(0..) {
            put(TrackDescriptor {
                uuid: Some(thread_uuid(ThreadTrack::own(pid, tid))),
                thread: Some(ThreadDescriptor {
                    pid: Some(pid.cast_signed()),
                    tid: Some(tid.into()),
                    thread_name: Some(name).filter(|name| !name.is_empty()).map(Into::into),
                }),
                sibling_order_rank: Some(rank),
                ..TrackDescriptor::default()
            })?;
        }
    }
    describe_counters(counters, i32::try_from(count).unwrap_or(i32::MAX), put)
}

/// Describes the tracks of all counters, in groups after tracks with lower ranks.
fn describe_counters(
    counters: &Counters<'_>,
    rank: i32,
    mut put: impl FnMut(TrackDescriptor) -> io::Result<()>,
) -> io::Result<()> {
    let all = counters.all();
    for (group, rank) in [Group::Clusters, Group::DispatchOverhead].into_iter().zip(rank..) {
        let of_group = all.iter().copied().filter(|counter| counter.group() == group);
        let mut of_group = of_group.zip(0..).peekable();
        if of_group.peek().is_none() {
            continue;
        }
        let parent = uuid(group.name(), &[]);
        put(TrackDescriptor {
            uuid: Some(parent),
            name: Some(group.name().into()),
            child_ordering: Some(BY_RANK),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        })?;
        for (counter, rank) in of_group {
            let name = counters.name(counter);
            put(TrackDescriptor {
                uuid: Some(counter_uuid(&name)),
                parent_uuid: Some(parent),
                name: Some(name.into()),
                counter: Some(CounterDescriptor {
                    unit_name: counters.unit(counter).map(Into::into),
                    ..CounterDescriptor::default()
                }),
                sibling_order_rank: Some(rank),
                ..TrackDescriptor::default()
            })?;
        }
    }
    Ok(())
}
