//! Figures of CPUs and clusters: shares of the window by state, and energy.

use std::collections::BTreeSet;

use super::{
    metric::{Family, Metric, Subject, Unit},
    power::{Aligned, align},
};
use crate::{
    model::cpu_list,
    report::{
        cpu_or_cluster::CpuOrCluster,
        power::{Measure, PowerTable, What},
        snapshot::{EnergyRow, Snapshot},
    },
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

/// Returns the energy of all CPUs and of each cluster, or the reason why it cannot be compared. `units` are the divisors
/// of sums, one a run.
pub(super) fn energy(
    runs: &[&Snapshot],
    names: &[&str],
    units: &[Option<f64>],
) -> Result<Vec<Metric>, String> {
    if runs.iter().all(|run| run.energy.is_none()) {
        return Ok(Vec::new());
    }
    same(runs, names, "CPUs", cpus)?;
    same(runs, names, "energy models", |run| {
        run.energy.as_ref().map_or_else(|| "none".into(), |energy| file_name(&energy.model).to_owned())
    })?;
    let energies: Vec<&EnergyRow> = runs.iter().filter_map(|run| run.energy.as_ref()).collect();
    let Some(first) = energies.first() else { return Ok(Vec::new()) };
    if energies.iter().any(|energy| energy.unit != first.unit) {
        return Err("their models have different units".into());
    }
    let unit = Unit::from(first.unit);
    let is_incomplete = runs.iter().any(|run| run.loss.makes_incomplete("energy"));
    let mut metrics = Vec::new();
    let mut add = |subject: &str, of: &dyn Fn(&EnergyRow) -> Option<[f64; 3]>| {
        let found: Vec<Option<[f64; 3]>> = energies.iter().map(|energy| of(energy)).collect();
        for (place, figure) in ["", ".min", ".max"].into_iter().enumerate() {
            let values = found.iter().zip(units).map(|(energy, unit)| Some((*energy)?[place] / (*unit)?));
            metrics.push(Metric {
                name: format!("{subject}{figure}"),
                subject: Subject::Energy,
                unit,
                family: if place == 0 { Family::Others } else { Family::None },
                is_incomplete,
                values: values.collect(),
            });
        }
    };
    add("energy", &|all| Some([all.total, all.total_min, all.total_max]));
    for cluster in &first.clusters {
        add(&format!("cluster.{}.energy", cluster.cluster), &|all| {
            let row = all.clusters.iter().find(|row| row.cluster == cluster.cluster)?;
            Some([row.total, row.total_min, row.total_max])
        });
    }
    Ok(metrics)
}

/// Checks that a property is the same in all runs; else names two that differ.
fn same(
    runs: &[&Snapshot],
    names: &[&str],
    what: &str,
    property: impl Fn(&Snapshot) -> String,
) -> Result<(), String> {
    let mut found = runs.iter().map(|run| property(run)).zip(names);
    let Some((first, name)) = found.next() else { return Ok(()) };
    match found.find(|(other, _)| *other != first) {
        None => Ok(()),
        Some((other, other_name)) => {
            Err(format!("the {what} differ: {first} in {name}, {other} in {other_name}"))
        }
    }
}

/// Returns the CPUs of a run, by cluster.
fn cpus(run: &Snapshot) -> String {
    let cpus: Vec<u32> = run.cpus.iter().map(|row| row.cpu).collect();
    if cpus.is_empty() {
        return "none".into();
    }
    let cluster = |row: &crate::report::snapshot::ClusterRow| {
        format!("{} {}", row.cluster, cpu_list::format(&row.cpus))
    };
    let clusters: Vec<String> = run.clusters.iter().map(cluster).collect();
    format!("{} ({})", cpu_list::format(&cpus), clusters.join(", "))
}

/// Returns the last part of a path: where a model lay does not matter.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
