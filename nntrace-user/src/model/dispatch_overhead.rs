//! Dispatch overhead: CPUs that are free while work that was handed over waits for its start.
//!
//! Clusters here are those whose CPUs share a clock. Work is ready for one from its dispatch or, where that was not seen, from
//! its receipt, until it starts. No event shows which CPUs a thread may use: where context switches are known, work is ready for
//! the clusters that the thread which does it ran on at any time of the run; else it is ready for every cluster.
//!
//! A cluster has overhead while one of its CPUs is idle and work is ready for it. `all` is where every cluster has overhead, `has`
//! where there is ready work, and each cluster that it is ready for has overhead. From these definitions, `all` is never more
//! than any cluster or than `has`; a cluster may have overhead where `has` is none.
//!
//! The time looked at is that from the first start of work to its last end.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{
    causality::hand_overs::HandOver,
    findings::Findings,
    scheduling::{CpuSet, NamedThread},
    timeline::{CpuState, Timeline, Timelines, visit_together},
    topology::{ClusterDescription, Topology},
};

/// Cluster that work may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Name of the cluster.
    pub(crate) name: String,
    /// Its CPUs.
    pub(crate) cpus: Vec<u32>,
}

/// State of a cluster at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterState {
    /// CPUs that are idle.
    pub(crate) idle: u32,
    /// Work that is ready for it.
    pub(crate) ready: u32,
    /// CPUs of which nothing is known.
    pub(crate) unknown: u32,
}

impl ClusterState {
    /// Whether a CPU is idle while work is ready.
    #[must_use]
    pub(crate) const fn has_overhead(self) -> bool {
        self.idle > 0 && self.ready > 0
    }
}

/// Whether every cluster has overhead.
#[must_use]
pub(crate) fn all_have_overhead(clusters: &[ClusterState]) -> bool {
    !clusters.is_empty() && clusters.iter().all(|cluster| cluster.has_overhead())
}

/// Whether work is ready, and each cluster that it is ready for has overhead.
#[must_use]
pub(crate) fn has_overhead(clusters: &[ClusterState]) -> bool {
    let mut wanted = clusters.iter().filter(|cluster| cluster.ready > 0).peekable();
    wanted.peek().is_some() && wanted.all(|cluster| cluster.has_overhead())
}

/// Dispatch overhead of a run.
#[derive(Clone, Debug)]
pub(crate) struct DispatchOverhead {
    /// Clusters, in the order of the topology.
    pub(crate) clusters: Vec<Cluster>,
    /// First start of work, ns.
    pub(crate) begin: u64,
    /// Last end of work, ns.
    pub(crate) end: u64,
    /// Hand-overs whose wait is known.
    pub(crate) hand_overs: u64,
    /// Hand-overs of which no start was seen, or neither dispatch nor receipt.
    pub(crate) not_counted: u64,
    /// Hand-overs of which the clusters that they may run on are inferred from where their thread ran.
    pub(crate) placed: u64,
    /// Longest piece of which the order of states is not known, ns; `None` where every state is kept.
    pub(crate) resolution: Option<u64>,
    timelines: Vec<Vec<Timeline>>,
    /// Changes of the work that is ready, by time: cluster, and one more or less.
    ready: Vec<(u64, usize, bool)>,
}

/// Sums of a run's overhead, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverheadSums {
    /// By cluster.
    pub(crate) clusters: Vec<ClusterSums>,
    /// Every cluster has overhead.
    pub(crate) all: u64,
    /// Each cluster that work is ready for has overhead, and there is one.
    pub(crate) has: u64,
    /// Changes of what a cluster does.
    pub(crate) changes: u64,
}

/// Sums of one cluster, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterSums {
    /// A CPU is idle.
    pub(crate) idle: u64,
    /// Work is ready.
    pub(crate) ready: u64,
    /// A CPU is idle, and work is ready.
    pub(crate) overhead: u64,
    /// Nothing is known of a CPU.
    pub(crate) unknown: u64,
}

impl Findings<'_> {
    /// Returns the dispatch overhead; `None` where no work was handed over whose start and end are known, or nothing is known of
    /// CPUs.
    #[must_use]
    pub(crate) fn dispatch_overhead(&self, timelines: &Timelines) -> Option<DispatchOverhead> {
        let hand_overs = self.marks.causality.hand_overs.as_ref()?.results().list;
        DispatchOverhead::of(&hand_overs, &self.run.threads, self.topology, timelines)
    }
}

impl DispatchOverhead {
    fn of(
        hand_overs: &[HandOver],
        threads: &[NamedThread],
        topology: &Topology,
        timelines: &Timelines,
    ) -> Option<Self> {
        let clusters = topology.clusters.iter().filter(|cluster| cluster.domain.shares_clock());
        let clusters: Vec<Cluster> = clusters.map(Cluster::of).collect();
        let timelines: Vec<Vec<Timeline>> = clusters
            .iter()
            .map(|cluster| cluster.cpus.iter().filter_map(|cpu| timelines.cpus.get(cpu).cloned()).collect())
            .collect();
        if timelines.iter().all(Vec::is_empty) {
            return None;
        }
        let begin = hand_overs.iter().filter_map(|hand_over| hand_over.start).min()?.time;
        let end = hand_overs.iter().filter_map(|hand_over| hand_over.end.or(hand_over.start)).max()?.time;
        let places = places(&clusters, threads);
        let everywhere: Vec<usize> = (0..clusters.len()).collect();
        let mut all = Self {
            clusters,
            begin,
            end,
            hand_overs: 0,
            not_counted: 0,
            placed: 0,
            resolution: timelines.iter().flatten().filter_map(Timeline::resolution).max(),
            timelines,
            ready: Vec::new(),
        };
        for hand_over in hand_overs {
            let receive = hand_over.receive;
            let ready = hand_over.dispatch.filter(|_| !hand_over.is_violation()).or(receive);
            let (Some(ready), Some(start)) = (ready, hand_over.start.map(|at| at.time)) else {
                all.not_counted += 1;
                continue;
            };
            all.hand_overs += 1;
            let place = receive.and_then(|receive| places.get(&(receive.pid, receive.tid)));
            all.placed += u64::from(place.is_some());
            if ready.time >= start {
                continue;
            }
            for cluster in place.unwrap_or(&everywhere) {
                all.ready.extend([(ready.time, *cluster, true), (start, *cluster, false)]);
            }
        }
        all.ready.sort_unstable();
        Some(all)
    }

    /// Shows every stretch in which nothing changes: its begin and end (ns), and what each cluster does.
    pub(crate) fn visit(&self, mut stretch: impl FnMut(u64, u64, &[ClusterState])) {
        let lanes: Vec<&Timeline> = self.timelines.iter().flatten().collect();
        let cluster_of: Vec<usize> = (0..)
            .zip(&self.timelines)
            .flat_map(|(cluster, lanes)| std::iter::repeat_n(cluster, lanes.len()))
            .collect();
        let missing: Vec<u32> = (self.clusters.iter().zip(&self.timelines))
            .map(|(cluster, lanes)| cluster.cpus.len().saturating_sub(lanes.len()) as u32)
            .collect();
        let mut clusters = vec![ClusterState::default(); self.clusters.len()];
        let mut changes = self.ready.iter().peekable();
        let mut since = self.begin;
        visit_together(&lanes, |begin, end, states| {
            let end = end.min(self.end);
            if end <= since {
                return;
            }
            for (cluster, unknown) in clusters.iter_mut().zip(&missing) {
                (cluster.idle, cluster.unknown) = (0, *unknown);
            }
            for (state, cluster) in states.iter().zip(&cluster_of) {
                match state {
                    CpuState::Idle(_) | CpuState::IdleUnknown => clusters[*cluster].idle += 1,
                    CpuState::Unknown => clusters[*cluster].unknown += 1,
                    CpuState::Running(_) | CpuState::Offline => {}
                }
            }
            since = since.max(begin);
            while since < end {
                while let Some((_, cluster, more)) = changes.next_if(|(time, ..)| *time <= since) {
                    let ready = &mut clusters[*cluster].ready;
                    // Less of what was more before: work starts after its dispatch.
                    *ready = if *more { *ready + 1 } else { *ready - 1 };
                }
                let until = changes.peek().map_or(end, |(time, ..)| end.min(*time));
                stretch(since, until, &clusters);
                since = until;
            }
        });
    }

    /// Returns the sums.
    #[must_use]
    pub(crate) fn sums(&self) -> OverheadSums {
        let clusters = vec![ClusterSums::default(); self.clusters.len()];
        let mut sums = OverheadSums { clusters, ..OverheadSums::default() };
        let mut last: Vec<ClusterState> = Vec::new();
        self.visit(|begin, end, clusters| {
            let time = |is: bool| if is { end - begin } else { 0 };
            for (sums, cluster) in sums.clusters.iter_mut().zip(clusters) {
                sums.idle += time(cluster.idle > 0);
                sums.ready += time(cluster.ready > 0);
                sums.overhead += time(cluster.has_overhead());
                sums.unknown += time(cluster.unknown > 0);
            }
            sums.all += time(all_have_overhead(clusters));
            sums.has += time(has_overhead(clusters));
            if last != clusters {
                sums.changes += 1;
                last = clusters.to_vec();
            }
        });
        sums
    }
}

impl Cluster {
    fn of(cluster: &ClusterDescription) -> Self {
        Self { name: cluster.name.clone(), cpus: cluster.cpus.clone() }
    }

    fn ran(&self, on: &CpuSet) -> bool {
        self.cpus.iter().any(|cpu| on.contains(*cpu))
    }
}

/// Returns the clusters that threads ran on, as far as that is known.
fn places(clusters: &[Cluster], threads: &[NamedThread]) -> BTreeMap<(u32, u32), Vec<usize>> {
    let known = threads.iter().filter(|thread| !thread.cpus.is_empty());
    let mut places: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for thread in known {
        let ran =
            (0..).zip(clusters).filter(|(_, cluster)| cluster.ran(&thread.cpus)).map(|(number, _)| number);
        // Of threads that had one id after the other, those of all.
        let place = places.entry((thread.pid, thread.tid)).or_default();
        place.extend(ran);
        place.sort_unstable();
        place.dedup();
    }
    places.retain(|_, clusters| !clusters.is_empty());
    places
}
