//! Rows of the energy of CPUs and clusters.

use crate::{
    model::{
        energy::{self, EnergyParts},
        findings::Findings,
    },
    report::snapshot::{ClusterEnergyRow, EnergyPartsRow, EnergyRow, UnpricedRow},
};

impl Findings<'_> {
    /// `None` without a model.
    pub(super) fn energy(&self) -> Option<EnergyRow> {
        let model = self.run.energy_model?;
        let energy = energy::price(model, self.topology, &self.sums.cpus, &self.clusters);
        let clusters = energy.clusters.into_iter().map(|cluster| ClusterEnergyRow {
            cluster: cluster.cluster,
            total: cluster.total,
            total_min: cluster.total_min,
            total_max: cluster.total_max,
            parts: parts(&cluster.parts),
        });
        let unpriced = energy.unpriced.into_iter().map(|time| UnpricedRow {
            cluster: time.cluster,
            cpu: time.cpu,
            what: time.what,
            ns: time.ns,
        });
        Some(EnergyRow {
            unit: model.result_unit(),
            total: energy.total,
            total_min: energy.total_min,
            total_max: energy.total_max,
            parts: parts(&energy.parts),
            clusters: clusters.collect(),
            phases: Vec::new(),
            unpriced: unpriced.collect(),
            model: model.file.clone(),
            notes: energy.notes,
        })
    }
}

fn parts(parts: &EnergyParts) -> EnergyPartsRow {
    EnergyPartsRow {
        cluster_idle: parts.cluster_idle,
        cluster_active: parts.cluster_active,
        cpu_idle: parts.cpu_idle,
        cpu_active: parts.cpu_active,
        wakeups: parts.wakeups,
    }
}
