//! Timelines of clusters and CPUs, as text and as a picture.

mod svg;
mod text;

use std::collections::BTreeMap;

pub use svg::svg;
pub use text::render;

use super::{
    cpu_or_cluster::{self, CpuOrCluster, CpuOrClusterRow, CpuState},
    number_format,
    snapshot::Snapshot,
};
use crate::model::{timeline::Timeline, timeline::Timelines};

/// A timeline with what it needs to be shown.
struct Entry<'a> {
    unit: CpuOrCluster,
    row: CpuOrClusterRow<'a>,
    timeline: &'a Timeline,
}

impl<'a> Entry<'a> {
    /// Every timeline, each cluster followed by its CPUs.
    fn all(snapshot: &'a Snapshot, timelines: &'a Timelines) -> Vec<Self> {
        let clusters: BTreeMap<&str, &Timeline> =
            timelines.clusters.iter().map(|(name, timeline)| (name.as_str(), timeline)).collect();
        let entry = |unit: CpuOrCluster| {
            let row = cpu_or_cluster::find(snapshot, &unit)?;
            let timeline = match &unit {
                CpuOrCluster::Cluster(name) => clusters.get(name.as_str()).copied(),
                CpuOrCluster::Cpu(cpu) => timelines.cpus.get(cpu),
            };
            Some(Self { row, timeline: timeline?, unit })
        };
        cpu_or_cluster::all(snapshot).into_iter().filter_map(entry).collect()
    }

    fn name(&self) -> String {
        match &self.unit {
            CpuOrCluster::Cluster(name) => format!("cluster {name}"),
            CpuOrCluster::Cpu(cpu) => format!("cpu{cpu}"),
        }
    }

    /// The name of what it does.
    fn cpu_state_name(&self, state: CpuState) -> String {
        match state {
            CpuState::Running(Some(khz)) => number_format::khz_exact(khz),
            other => cpu_or_cluster::cpu_state_name(other, self.row.idle),
        }
    }

    /// Note where not every stretch was kept.
    fn is_coarse(&self) -> Option<String> {
        let resolution = number_format::duration_ns(self.timeline.resolution()?);
        let name = self.name();
        Some(format!(
            "{name} changed too often to keep every change: within {resolution} the order is not told, the sums are"
        ))
    }
}

/// Times (ns, from the begin of a window of this length) for an axis with at most this many marks.
fn ticks(length: u64, at_most: u64) -> impl Iterator<Item = u64> {
    let least = length.div_ceil(at_most.max(1)).max(1);
    let power = 10_u64.saturating_pow(least.ilog10());
    let step = [1, 2, 5, 10].into_iter().map(|digit| power.saturating_mul(digit)).find(|&step| step >= least);
    let step = step.unwrap_or(least);
    (0..=length / step).map(move |number| number * step)
}

/// A time (ns) in ms, with every digit that it has.
fn milliseconds(ns: u64) -> String {
    let fraction = format!("{:06}", ns % 1_000_000);
    let kept = fraction.trim_end_matches('0');
    if kept.is_empty() { (ns / 1_000_000).to_string() } else { format!("{}.{kept}", ns / 1_000_000) }
}

/// A time (ns) in seconds, to the microsecond.
fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_marks() {
        assert_eq!(ticks(900_000, 9).collect::<Vec<_>>().len(), 10);
        assert_eq!(ticks(1_000, 3).collect::<Vec<_>>(), [0, 500, 1_000]);
        assert_eq!(ticks(0, 10).collect::<Vec<_>>(), [0]);
        assert!(ticks(u64::MAX, 7).count() <= 8);
        assert_eq!(milliseconds(1_250_000), "1.25");
        assert_eq!(milliseconds(3_000_000), "3");
    }
}
