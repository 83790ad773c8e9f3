//! Comparison of a snapshot's rows with the sweeps of [`crate::power`].

use std::collections::BTreeMap;

use nntrace_user::report::snapshot::{ClusterRow, CpuRow, FrequencyRow, IdleRow};

use crate::power::{Residency, Stays, cluster::ClusterResidency};

/// Checks that a CPU's row equals the sweep, to the nanosecond.
///
/// # Panics
/// When it does not.
pub fn assert_cpu(row: &CpuRow, swept: &Residency) {
    assert_eq!(idle(&row.idle), swept.idle, "idle of CPU {}", row.cpu);
    assert_eq!(frequencies(&row.running), sums(&swept.running), "running of CPU {}", row.cpu);
    let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
    assert_eq!(
        others,
        [swept.idle_unknown_ns, swept.offline_ns, swept.unknown_ns],
        "the rest of CPU {}",
        row.cpu
    );
}

/// Checks that a cluster's row, and its CPUs' times at its frequency, equal the sweep.
///
/// # Panics
/// When they do not.
pub fn assert_cluster(row: &ClusterRow, cpus: &[CpuRow], swept: &ClusterResidency) {
    assert_eq!(idle(&row.idle), swept.idle, "idle of cluster {}", row.cluster);
    assert_eq!(frequencies(&row.active), sums(&swept.active), "active of cluster {}", row.cluster);
    let concurrency = row.concurrency.iter().map(|row| (row.running_cpus, row.ns));
    assert_eq!(concurrency.collect::<BTreeMap<_, _>>(), swept.concurrency, "of cluster {}", row.cluster);
    let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
    assert_eq!(
        others,
        [swept.idle_unknown_ns, swept.offline_ns, swept.unknown_ns],
        "the rest of cluster {}",
        row.cluster
    );
    let members = cpus.iter().filter(|cpu| row.cpus.contains(&cpu.cpu) && !cpu.effective.is_empty());
    let effective = members
        .map(|cpu| (cpu.cpu, cpu.effective.iter().map(|row| (row.khz, row.ns)).collect::<BTreeMap<_, _>>()));
    assert_eq!(effective.collect::<BTreeMap<_, _>>(), swept.effective, "in cluster {}", row.cluster);
}

/// Checks that the parts of each CPU and each cluster add up to the window.
///
/// # Panics
/// When they do not.
pub fn assert_tiled(cpus: &[CpuRow], clusters: &[ClusterRow], window_ns: u64) {
    let idle = |rows: &[IdleRow]| rows.iter().map(|row| row.ns).sum::<u64>();
    let running = |rows: &[FrequencyRow]| rows.iter().map(|row| row.ns).sum::<u64>();
    for row in cpus {
        let parts = idle(&row.idle) + running(&row.running);
        let others = row.idle_unknown_ns + row.offline_ns + row.unknown_ns;
        assert_eq!(parts + others, window_ns, "CPU {}", row.cpu);
        assert_eq!(
            row.effective.iter().map(|row| row.ns).sum::<u64>(),
            running(&row.running),
            "CPU {} runs as long by its own as by the cluster's frequency",
            row.cpu
        );
    }
    for row in clusters {
        let parts = idle(&row.idle) + running(&row.active);
        let others = row.idle_unknown_ns + row.offline_ns + row.unknown_ns;
        assert_eq!(parts + others, window_ns, "cluster {}", row.cluster);
        assert_eq!(row.concurrency.iter().map(|row| row.ns).sum::<u64>(), window_ns, "{}", row.cluster);
    }
}

fn idle(rows: &[IdleRow]) -> BTreeMap<u32, Stays> {
    let stays = rows.iter().map(|row| {
        let (min_ns, max_ns) = (row.min_ns.unwrap_or(0), row.max_ns.unwrap_or(0));
        (row.state, Stays { ns: row.ns, hits: row.hits, min_ns, max_ns })
    });
    stays.collect()
}

fn frequencies(rows: &[FrequencyRow]) -> BTreeMap<Option<u32>, (u64, u64)> {
    rows.iter().map(|row| (row.khz, (row.ns, row.hits))).collect()
}

fn sums(stays: &BTreeMap<Option<u32>, Stays>) -> BTreeMap<Option<u32>, (u64, u64)> {
    stays.iter().map(|(&khz, stays)| (khz, (stays.ns, stays.hits))).collect()
}
