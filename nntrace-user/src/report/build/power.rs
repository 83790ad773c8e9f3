//! Rows of the residency of CPUs and clusters.

use std::collections::BTreeMap;

use nntrace_common::{power::Residency, time_count::TimeCount};

use crate::{
    model::{findings::Findings, idle_stays::Stays},
    report::snapshot::{ClusterRow, ConcurrencyRow, CpuRow, EffectiveRow, FrequencyRow, IdleRow, InitialRow},
};

impl Findings<'_> {
    pub(super) fn cpus(&self) -> Vec<CpuRow> {
        let effective_of = |cpu: u32| self.clusters.iter().find_map(|cluster| cluster.effective.get(&cpu));
        let rows = self.sums.cpus.iter().map(|residency| CpuRow {
            cpu: residency.cpu,
            cluster: self.topology.cluster_of(residency.cpu).into(),
            idle: idle_rows(
                &residency.idle,
                |state| self.topology.idle_name(residency.cpu, state),
                |state| self.idle_stays.of(residency.cpu, state),
            ),
            running: frequencies(&residency.running),
            effective: effective_of(residency.cpu)
                .into_iter()
                .flatten()
                .map(|(&khz, &ns)| EffectiveRow { khz, ns })
                .collect(),
            idle_unknown_ns: residency.idle_unknown_ns,
            offline_ns: residency.offline_ns,
            unknown_ns: residency.unknown_ns,
            initial: InitialRow { idle: residency.initial.0, frequency: residency.initial.1 },
        });
        rows.collect()
    }

    pub(super) fn clusters(&self) -> Vec<ClusterRow> {
        let rows =
            self.topology.clusters.iter().zip(self.clusters.iter()).map(|(cluster, residency)| ClusterRow {
                cluster: cluster.name.clone(),
                cpus: cluster.cpus.clone(),
                domain: cluster.domain,
                active: frequencies(&residency.active),
                idle: idle_rows(
                    &residency.idle,
                    |level| self.topology.level_name(&cluster.cpus, level),
                    |_| None,
                ),
                concurrency: concurrency(&residency.concurrency),
                idle_unknown_ns: residency.idle_unknown_ns,
                offline_ns: residency.offline_ns,
                unknown_ns: residency.unknown_ns,
            });
        rows.collect()
    }
}

fn concurrency(times: &BTreeMap<Option<u32>, u64>) -> Vec<ConcurrencyRow> {
    let row = |(&running_cpus, &ns): (&Option<u32>, &u64)| ConcurrencyRow { running_cpus, ns };
    let (unknown, known): (Vec<_>, Vec<_>) =
        times.iter().map(row).partition(|row| row.running_cpus.is_none());
    [known, unknown].concat()
}

fn idle_rows<'a>(
    idle: &BTreeMap<u32, Residency>,
    name: impl Fn(u32) -> String,
    stays: impl Fn(u32) -> Option<&'a Stays>,
) -> Vec<IdleRow> {
    let rows = idle.iter().map(|(&state, residency)| {
        let stays = stays(state);
        // What the histogram rounds up is no longer than the longest.
        let quantile = |q: f64| stays.map(|stays| stays.lengths.value_at_quantile(q).min(residency.max_ns));
        IdleRow {
            state,
            name: name(state),
            ns: residency.ns,
            hits: residency.hits,
            min_ns: (residency.hits > 0).then_some(residency.min_ns),
            max_ns: (residency.hits > 0).then_some(residency.max_ns),
            whole_stays: stays.map_or(0, |stays| stays.lengths.len()),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            early: stays.and_then(|stays| stays.early),
            late: stays.and_then(|stays| stays.late),
        }
    });
    rows.collect()
}

fn frequencies(by_khz: &BTreeMap<Option<u32>, TimeCount>) -> Vec<FrequencyRow> {
    by_khz.iter().map(|(&khz, sum)| FrequencyRow { khz, ns: sum.ns, hits: sum.count }).collect()
}
