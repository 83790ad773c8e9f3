//! Frequencies of clusters over time.

use crate::model::{
    Topology,
    timeline::{CpuState, Timelines},
};

/// Frequencies of a cluster over time.
pub(in crate::analyze) struct ClusterTimes {
    /// Name of the cluster.
    pub(in crate::analyze) name: String,
    /// Its CPUs.
    pub(in crate::analyze) cpus: Vec<u32>,
    /// Ends of stretches (ns), and the frequency until then, kHz.
    stretches: Vec<(u64, Option<u32>)>,
}

/// Frequencies of all clusters over time.
pub(in crate::analyze) struct Frequencies(pub(in crate::analyze) Vec<ClusterTimes>);

impl Frequencies {
    /// Takes the frequencies out of timelines.
    pub(in crate::analyze) fn new(topology: &Topology, timelines: &Timelines) -> Self {
        let clusters = topology.clusters.iter().filter_map(|cluster| {
            let (_, timeline) = timelines.clusters.iter().find(|(name, _)| *name == cluster.name)?;
            let mut stretches = Vec::new();
            timeline.visit(|_, end, parts| {
                let khz = match parts {
                    [(CpuState::Running(khz), _)] => *khz,
                    // In which order things were is not known.
                    _ => None,
                };
                stretches.push((end, khz));
            });
            Some(ClusterTimes { name: cluster.name.clone(), cpus: cluster.cpus.clone(), stretches })
        });
        Self(clusters.collect())
    }

    /// Returns the cluster that a CPU is in.
    pub(in crate::analyze) fn of_cpu(&self, cpu: u32) -> Option<&ClusterTimes> {
        self.0.iter().find(|cluster| cluster.cpus.contains(&cpu))
    }
}

impl ClusterTimes {
    /// Returns the highest frequency that it had, kHz; 0 where none is known.
    pub(in crate::analyze) fn highest(&self) -> u32 {
        self.stretches.iter().filter_map(|(_, khz)| *khz).max().unwrap_or(0)
    }

    /// Shows the frequencies (kHz) between two times, each with its length, ns.
    pub(in crate::analyze) fn visit(&self, begin: u64, end: u64, mut take: impl FnMut(u64, Option<u32>)) {
        let first = self.stretches.partition_point(|(until, _)| *until <= begin);
        let mut at = begin;
        for (until, khz) in &self.stretches[first..] {
            if at >= end {
                return;
            }
            let next = (*until).min(end);
            take(next - at, *khz);
            at = next;
        }
        if at < end {
            take(end - at, None);
        }
    }
}
