//! Figures of CPUs and clusters: shares of the window by state.

use std::collections::BTreeSet;

use super::{
    metric::{Family, Metric, Subject, Unit},
    power::{Aligned, align},
    runs::{cpus, same},
};
use crate::report::{
    cpu_or_cluster::CpuOrCluster,
    power::{Measure, PowerTable, What},
    snapshot::Snapshot,
};

/// Share of a state that no run exceeds, of 1, and that is shown without being judged.
const LEAST_SHARE: f64 = 0.001;

/// Returns the shares of all states that any run has time in, or the reason why they cannot be compared.
pub(super) fn metrics(runs: &[&Snapshot], names: &[&str]) -> Result<Vec<Metric>, String> {
    same(runs, names, "CPUs", cpus)?;
    let mut metrics: Vec<Metric> = Vec::new();
    let mut taken = BTreeSet::new();
    for table in PowerTable::ALL {
        for unit in align(runs, table) {
            let key = match (&unit.group.unit, unit.group.measure) {
                (CpuOrCluster::Cluster(_), _) => "clusters",
                (_, Measure::Effective) => "cpus.effective",
                _ => "cpus",
            };
            let is_incomplete = runs.iter().any(|run| run.loss.makes_incomplete(key));
            for (what, values) in shares(&unit) {
                let name = format!("{}.{}", subject(&unit.group.unit), state(&unit, &what));
                // Some are in more than one table.
                if values.iter().flatten().any(|share| *share > 0.0) && taken.insert(name.clone()) {
                    // The same once more, or too little to matter.
                    let is_judged = metrics.iter().all(|other| other.values != values)
                        && values.iter().flatten().any(|share| *share >= LEAST_SHARE);
                    let family = if is_judged { Family::Others } else { Family::None };
                    let (subject, unit) = (Subject::Residency, Unit::Share);
                    metrics.push(Metric { name, subject, unit, family, is_incomplete, values });
                }
            }
        }
    }
    Ok(metrics)
}

fn shares(unit: &Aligned) -> impl Iterator<Item = (What, Vec<Option<f64>>)> {
    unit.rows.iter().map(|(what, amounts)| {
        let share = amounts.iter().zip(&unit.windows_ns).map(|(amount, window_ns)| {
            // A state that a run has no row of had no time there.
            let ns = amount.map_or(0, |amount| amount.ns);
            window_ns.filter(|window_ns| *window_ns > 0).map(|window_ns| ns as f64 / window_ns as f64)
        });
        (what.clone(), share.collect())
    })
}

fn subject(unit: &CpuOrCluster) -> String {
    match unit {
        CpuOrCluster::Cluster(name) => format!("cluster.{name}"),
        CpuOrCluster::Cpu(cpu) => format!("cpu{cpu}"),
    }
}

fn state(unit: &Aligned, what: &What) -> String {
    let khz = |khz: &Option<u32>| khz.map_or_else(|| "unknown".to_owned(), |khz| khz.to_string());
    match what {
        What::Running if unit.group.is_cluster() => "active".into(),
        What::Running => "running".into(),
        What::At(at) if unit.group.is_cluster() => format!("active.{}", khz(at)),
        What::At(at) => format!("{}.{}", unit.group.measure.name(), khz(at)),
        What::Idle => "idle".into(),
        What::IdleState(..) => format!("idle.{}", what.label(unit.group.is_cluster())),
        What::IdleUnknown => "idle.unknown".into(),
        What::Offline => "offline".into(),
        What::Unknown => "unknown".into(),
        What::AtOnce(cpus) => format!("running_cpus.{}", khz(cpus)),
    }
}
