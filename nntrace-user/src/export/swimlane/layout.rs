//! Order of tracks: processes in the order of the pipeline, their threads, the main one first.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::layer::Layer;

use super::{ThreadName, hand_overs::HandOvers};
use crate::model::Findings;

/// Process with its threads, in the order of their tracks.
pub(crate) struct ProcessTracks<'a> {
    pub(crate) pid: u32,
    /// Name, where it is known.
    pub(crate) name: Option<&'a str>,
    /// Its threads; names are empty where they are not known.
    pub(crate) threads: Vec<ThreadName>,
}

/// Returns the processes in the order of the pipeline, which is that of their outermost layers. Of a process, the main thread
/// comes first, then the others in their order here, and those that only take part in hand-overs or never ended a section.
pub(crate) fn processes<'a>(findings: &'a Findings<'_>, threads: &[ThreadName]) -> Vec<ProcessTracks<'a>> {
    let mut processes: BTreeMap<u32, Vec<ThreadName>> = BTreeMap::new();
    for thread in all_threads(findings, threads) {
        processes.entry(thread.pid).or_default().push(thread);
    }
    let layers = layers(findings);
    let mut processes: Vec<(u32, Vec<ThreadName>)> = processes.into_iter().collect();
    processes.sort_by_key(|(pid, _)| (layers.get(pid).copied().unwrap_or(Layer::Other), *pid));
    let tracks = processes.into_iter().map(|(pid, mut threads)| {
        threads.sort_by_key(|thread| thread.tid != pid);
        let mut seen = BTreeSet::new();
        // Of threads that had one id after the other, the first one's name is that of the track.
        threads.retain(|thread| seen.insert(thread.tid));
        let name = findings.run.processes.get(&pid).map(|process| &*process.comm);
        ProcessTracks { pid, name: name.filter(|name| !name.is_empty()), threads }
    });
    tracks.collect()
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

/// Returns the threads that have a track: these, those of hand-overs, and those with a section that had not ended.
fn all_threads(findings: &Findings<'_>, threads: &[ThreadName]) -> Vec<ThreadName> {
    let mut all = threads.to_vec();
    let mut known: BTreeSet<(u32, u32)> = all.iter().map(|thread| (thread.pid, thread.tid)).collect();
    let hand_overs = HandOvers::of(findings);
    let unfinished = findings.unfinished_sections(threads.iter().map(|thread| (thread.pid, thread.tid)));
    let unfinished = unfinished.iter().filter_map(|section| Some((section.pid?, section.tid)));
    let others: BTreeSet<(u32, u32)> = hand_overs.threads().chain(unfinished).collect();
    let others = others.into_iter().filter(|ids| known.insert(*ids));
    all.extend(named(findings, others));
    all
}

/// Returns threads with the names that their states have.
pub(super) fn named(
    findings: &Findings<'_>,
    threads: impl Iterator<Item = (u32, u32)>,
) -> impl Iterator<Item = ThreadName> {
    let states = findings.run.threads.iter();
    let names: BTreeMap<(u32, u32), &str> =
        states.map(|thread| ((thread.pid, thread.tid), &*thread.comm)).collect();
    threads.map(move |(pid, tid)| {
        let name = names.get(&(pid, tid)).copied().unwrap_or_default().to_owned();
        ThreadName { pid, tid, name }
    })
}
