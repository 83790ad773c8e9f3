//! Tracks: processes in the order of the pipeline, their threads, clusters, and the numbers of them all.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use nntrace_common::layer::Layer;

use super::packets::write_packet;
use crate::{
    export::ThreadName,
    model::Findings,
    perfetto_schema::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor},
};

/// Order of the children of a track: by their ranks. Also of processes, and of threads.
const BY_RANK: i32 = 3;
const EXPLICIT: i32 = 1;
/// Merging of tracks of one name: none.
const NEVER_MERGED: i32 = 2;
/// Name of the group of clusters.
const CLUSTERS: &str = "clusters";

/// Counter of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterCounter {
    /// Frequency at which it runs.
    Frequency,
    /// Idle state.
    Idle,
}

impl ClusterCounter {
    const ALL: [Self; 2] = [Self::Frequency, Self::Idle];

    const fn name(self) -> &'static str {
        match self {
            Self::Frequency => "frequency",
            Self::Idle => "idle state",
        }
    }

    const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Frequency => Some("kHz"),
            Self::Idle => None,
        }
    }

    /// Returns the number of its track.
    pub(super) fn uuid(self, cluster: &str) -> u64 {
        uuid(self.name(), &[cluster.as_bytes()])
    }
}

/// Returns the number of a process's track.
pub(super) fn process_uuid(pid: u32) -> u64 {
    uuid("process", &[&pid.to_le_bytes()])
}

/// Returns the number of a thread's track.
pub(super) fn thread_uuid(pid: u32, tid: u32) -> u64 {
    lane_uuid(pid, tid, 0)
}

/// Returns the number of one of a thread's tracks: the first one is its own, others have sections that do not nest.
pub(super) fn lane_uuid(pid: u32, tid: u32, lane: u32) -> u64 {
    uuid("thread", &[&pid.to_le_bytes(), &tid.to_le_bytes(), &lane.to_le_bytes()])
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
pub(super) fn lane(pid: u32, tid: u32, lane: u32) -> TracePacket {
    described(TrackDescriptor {
        uuid: Some(lane_uuid(pid, tid, lane)),
        parent_uuid: Some(thread_uuid(pid, tid)),
        name: Some("sections that overlap".into()),
        sibling_merge_behavior: Some(NEVER_MERGED),
        ..TrackDescriptor::default()
    })
}

/// Returns the outermost layer of each process's sections; of a driver, no layer before the driver's.
fn layers(findings: &Findings<'_>) -> BTreeMap<u32, Layer> {
    let mut layers: BTreeMap<u32, Layer> = BTreeMap::new();
    for (pid, tag) in findings.marks.paths.phases(&findings.sums.totals).into_keys() {
        let layer = layers.entry(pid).or_insert(tag.layer());
        *layer = tag.layer().min(*layer);
    }
    for pid in findings.marks.drivers() {
        let layer = layers.entry(pid).or_insert(Layer::Driver);
        *layer = Layer::Driver.max(*layer);
    }
    layers
}

/// Writes the descriptions of all tracks: processes in the order of the pipeline, which is that of their outermost layers,
/// then clusters. Of a process, the main thread comes first, then the others in their order here.
pub(super) fn write(out: &mut impl Write, findings: &Findings<'_>, threads: &[ThreadName]) -> io::Result<()> {
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
    let mut processes: BTreeMap<u32, Vec<&ThreadName>> = BTreeMap::new();
    for thread in threads {
        processes.entry(thread.pid).or_default().push(thread);
    }
    let layers = layers(findings);
    let mut processes: Vec<(u32, Vec<&ThreadName>)> = processes.into_iter().collect();
    processes.sort_by_key(|(pid, _)| (layers.get(pid).copied().unwrap_or(Layer::Other), *pid));
    let count = processes.len();
    for ((pid, mut threads), rank) in processes.into_iter().zip(0..) {
        let name = findings.run.processes.get(&pid).map(|process| process.comm.clone());
        let name = name.filter(|name| !name.is_empty());
        put(TrackDescriptor {
            uuid: Some(process_uuid(pid)),
            process: Some(ProcessDescriptor {
                pid: Some(pid.cast_signed()),
                process_name: name.map(Into::into),
            }),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        })?;
        threads.sort_by_key(|thread| thread.tid != pid);
        let mut seen = BTreeSet::new();
        // Of threads that had one id after the other, the first one's name is that of the track.
        threads.retain(|thread| seen.insert(thread.tid));
        for (thread, rank) in threads.into_iter().zip(0..) {
            let name = Some(thread.name.clone()).filter(|name| !name.is_empty());
            put(TrackDescriptor {
                uuid: Some(thread_uuid(pid, thread.tid)),
                thread: Some(ThreadDescriptor {
                    pid: Some(pid.cast_signed()),
                    tid: Some(thread.tid.into()),
                    thread_name: name.map(Into::into),
                }),
                sibling_order_rank: Some(rank),
                ..TrackDescriptor::default()
            })?;
        }
    }
    let clusters = &findings.topology.clusters;
    if clusters.is_empty() {
        return Ok(());
    }
    let group = uuid(CLUSTERS, &[]);
    put(TrackDescriptor {
        uuid: Some(group),
        name: Some(CLUSTERS.into()),
        child_ordering: Some(BY_RANK),
        sibling_order_rank: Some(i32::try_from(count).unwrap_or(i32::MAX)),
        ..TrackDescriptor::default()
    })?;
    let counters = clusters.iter().flat_map(|cluster| ClusterCounter::ALL.map(|counter| (cluster, counter)));
    for ((cluster, counter), rank) in counters.zip(0..) {
        put(TrackDescriptor {
            uuid: Some(counter.uuid(&cluster.name)),
            parent_uuid: Some(group),
            name: Some(format!("cluster {} {}", cluster.name, counter.name()).into()),
            counter: Some(CounterDescriptor {
                unit_name: counter.unit().map(Into::into),
                ..CounterDescriptor::default()
            }),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        })?;
    }
    Ok(())
}
