//! Clusters and CPUs of a snapshot, seen in the same way: as parts of the window.

use super::{
    number_format,
    snapshot::{ClusterRow, CpuRow, FrequencyRow, IdleRow, Snapshot},
};
pub(crate) use crate::model::timeline::CpuState;

/// A cluster or a CPU, by what makes it the same in another snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CpuOrCluster {
    /// A cluster, by name.
    Cluster(String),
    /// A CPU, by number.
    Cpu(u32),
}

/// A cluster or a CPU of a snapshot, seen in the same way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuOrClusterRow<'a> {
    /// Name of the cluster, its own or the CPU's.
    pub(crate) cluster: &'a str,
    /// Running, by requested frequency (of a cluster: the highest of its running CPUs).
    pub(crate) running: &'a [FrequencyRow],
    /// Idle, by state (of a cluster: by the deepest that all CPUs share).
    pub(crate) idle: &'a [IdleRow],
    /// Idle in an unknown state, ns.
    pub(crate) idle_unknown_ns: u64,
    /// Offline, ns.
    pub(crate) offline_ns: u64,
    /// Nothing known, ns.
    pub(crate) unknown_ns: u64,
    /// The CPU's row, if it is a CPU.
    pub(crate) cpu: Option<&'a CpuRow>,
    /// The cluster's row, if it is a cluster.
    pub(crate) group: Option<&'a ClusterRow>,
}

impl<'a> CpuOrClusterRow<'a> {
    fn of_cpu(row: &'a CpuRow) -> Self {
        Self {
            cluster: &row.cluster,
            running: &row.running,
            idle: &row.idle,
            idle_unknown_ns: row.idle_unknown_ns,
            offline_ns: row.offline_ns,
            unknown_ns: row.unknown_ns,
            cpu: Some(row),
            group: None,
        }
    }

    fn of_cluster(row: &'a ClusterRow) -> Self {
        Self {
            cluster: &row.cluster,
            running: &row.active,
            idle: &row.idle,
            idle_unknown_ns: row.idle_unknown_ns,
            offline_ns: row.offline_ns,
            unknown_ns: row.unknown_ns,
            cpu: None,
            group: Some(row),
        }
    }

    /// Times by state, ns: running from the fastest down, then idle from the shallowest down, then the rest.
    /// The times add up to the window.
    #[must_use]
    pub(crate) fn parts(&self) -> Vec<(CpuState, u64)> {
        let mut running: Vec<_> = self.running.iter().map(|row| (row.khz, row.ns)).collect();
        running.sort_by_key(|&(khz, _)| std::cmp::Reverse(khz));
        let running = running.into_iter().map(|(khz, ns)| (CpuState::Running(khz), ns));
        let idle = self.idle.iter().map(|row| (CpuState::Idle(row.state), row.ns));
        let rest = [
            (CpuState::IdleUnknown, self.idle_unknown_ns),
            (CpuState::Offline, self.offline_ns),
            (CpuState::Unknown, self.unknown_ns),
        ];
        running.chain(idle).chain(rest).collect()
    }
}

/// Every cluster followed by its CPUs, in the order of the topology; CPUs without a cluster come last.
#[must_use]
pub(crate) fn all(snapshot: &Snapshot) -> Vec<CpuOrCluster> {
    let mut units = Vec::new();
    for cluster in &snapshot.clusters {
        units.push(CpuOrCluster::Cluster(cluster.cluster.clone()));
        let own = snapshot.cpus.iter().filter(|row| row.cluster == cluster.cluster);
        units.extend(own.map(|row| CpuOrCluster::Cpu(row.cpu)));
    }
    for row in &snapshot.cpus {
        if !units.contains(&CpuOrCluster::Cpu(row.cpu)) {
            units.push(CpuOrCluster::Cpu(row.cpu));
        }
    }
    units
}

/// The row of `unit` in `snapshot`.
#[must_use]
pub(crate) fn find<'a>(snapshot: &'a Snapshot, unit: &CpuOrCluster) -> Option<CpuOrClusterRow<'a>> {
    match unit {
        CpuOrCluster::Cluster(name) => {
            snapshot.clusters.iter().find(|row| row.cluster == *name).map(CpuOrClusterRow::of_cluster)
        }
        CpuOrCluster::Cpu(cpu) => {
            snapshot.cpus.iter().find(|row| row.cpu == *cpu).map(CpuOrClusterRow::of_cpu)
        }
    }
}

/// The frequencies at which `cluster` and its CPUs ran, ascending, each once.
#[must_use]
pub(crate) fn frequencies(snapshot: &Snapshot, cluster: &str) -> Vec<u32> {
    let cpus = snapshot.cpus.iter().filter(|row| row.cluster == cluster).flat_map(|row| &row.running);
    let clusters = snapshot.clusters.iter().filter(|row| row.cluster == cluster).flat_map(|row| &row.active);
    let mut all: Vec<u32> = cpus.chain(clusters).filter(|row| row.ns > 0).filter_map(|row| row.khz).collect();
    let effective = snapshot.cpus.iter().filter(|row| row.cluster == cluster).flat_map(|row| &row.effective);
    all.extend(effective.filter(|row| row.ns > 0).filter_map(|row| row.khz));
    all.sort_unstable();
    all.dedup();
    all
}

/// The word for what a CPU does; `idle` are the states of that CPU.
#[must_use]
pub(crate) fn cpu_state_name(state: CpuState, idle: &[IdleRow]) -> String {
    match state {
        CpuState::Running(Some(khz)) => number_format::khz(khz),
        CpuState::Running(None) => "frequency unknown".to_owned(),
        CpuState::Idle(state) => idle
            .iter()
            .find(|row| row.state == state && !row.name.is_empty())
            .map_or_else(|| format!("state {state}"), |row| row.name.clone()),
        CpuState::IdleUnknown => "idle, state unknown".to_owned(),
        CpuState::Offline => "offline".to_owned(),
        CpuState::Unknown => "unknown".to_owned(),
    }
}

/// Deals `units` out to the parts, in proportion and to the last one (largest remainders first).
/// All zero when there is nothing.
#[must_use]
pub(crate) fn shares(parts: &[u64], units: u64) -> Vec<u64> {
    let whole: u128 = parts.iter().map(|&part| u128::from(part)).sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    let exact = |part: u64| u128::from(part) * u128::from(units);
    let mut shares: Vec<u64> = parts.iter().map(|&part| (exact(part) / whole) as u64).collect();
    let missing = units - shares.iter().sum::<u64>();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|&index| std::cmp::Reverse(exact(parts[index]) % whole));
    for &index in by_remainder.iter().take(missing as usize) {
        shares[index] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_use_up_every_unit() {
        assert_eq!(shares(&[1, 1, 1], 1000), [334, 333, 333]);
        assert_eq!(shares(&[0, 5, 0], 1000), [0, 1000, 0]);
        assert_eq!(shares(&[0, 0], 1000), [0, 0]);
        assert_eq!(shares(&[], 1000), Vec::<u64>::new());
        let parts = [u64::MAX, u64::MAX / 3, 17, 0, u64::MAX];
        assert_eq!(shares(&parts, 1000).iter().sum::<u64>(), 1000);
        assert_eq!(shares(&parts, 46).iter().sum::<u64>(), 46);
    }
}
