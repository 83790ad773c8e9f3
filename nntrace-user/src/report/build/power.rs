//! What the CPUs and their clusters did, as rows.

use std::collections::BTreeMap;

use nntrace_common::power::Residency;

use super::Parts;
use crate::report::snapshot::{ClusterRow, ConcurrencyRow, CpuRow, EffectiveRow, FrequencyRow, IdleRow};

impl Parts<'_> {
    pub(super) fn cpus(&self) -> Vec<CpuRow> {
        let effective_of = |cpu: u32| self.clusters.iter().find_map(|cluster| cluster.effective.get(&cpu));
        let rows = self.cpus.iter().map(|residency| CpuRow {
            cpu: residency.cpu,
            cluster: self.topology.cluster_of(residency.cpu).into(),
            idle: idle_rows(&residency.idle, |state| self.topology.idle_name(residency.cpu, state)),
            running: frequencies(&residency.running),
            effective: effective_of(residency.cpu)
                .into_iter()
                .flatten()
                .map(|(&khz, &ns)| EffectiveRow { khz, ns })
                .collect(),
            idle_unknown_ns: residency.idle_unknown_ns,
            offline_ns: residency.offline_ns,
            unknown_ns: residency.unknown_ns,
        });
        rows.collect()
    }

    pub(super) fn clusters(&self) -> Vec<ClusterRow> {
        let rows = self.topology.clusters.iter().zip(self.clusters).map(|(cluster, residency)| ClusterRow {
            cluster: cluster.name.clone(),
            cpus: cluster.cpus.clone(),
            domain: cluster.domain.name().into(),
            active: frequencies(&residency.active),
            idle: idle_rows(&residency.idle, |level| self.topology.level_name(&cluster.cpus, level)),
            concurrency: residency
                .concurrency
                .iter()
                .map(|(&running_cpus, &ns)| ConcurrencyRow { running_cpus, ns })
                .collect(),
            idle_unknown_ns: residency.idle_unknown_ns,
            offline_ns: residency.offline_ns,
            unknown_ns: residency.unknown_ns,
        });
        rows.collect()
    }
}

fn idle_rows(idle: &BTreeMap<u32, Residency>, name: impl Fn(u32) -> String) -> Vec<IdleRow> {
    let rows = idle.iter().map(|(&state, stay)| IdleRow {
        state,
        name: name(state),
        ns: stay.ns,
        hits: stay.hits,
        min_ns: (stay.hits > 0).then_some(stay.min_ns),
        max_ns: (stay.hits > 0).then_some(stay.max_ns),
        early: None,
        late: None,
    });
    rows.collect()
}

fn frequencies(by_khz: &BTreeMap<Option<u32>, (u64, u64)>) -> Vec<FrequencyRow> {
    by_khz.iter().map(|(&khz, &(ns, hits))| FrequencyRow { khz, ns, hits }).collect()
}
