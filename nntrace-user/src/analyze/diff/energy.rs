//! Figures of energy by a model: of all CPUs, of each cluster, of layers and phases.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::layer::Tag;

use super::{
    metric::{Family, Metric, Subject, Unit},
    runs::{cpus, same},
};
use crate::{
    analyze::run_graph::component::UNMARKED_NAME,
    report::snapshot::{EnergyRow, Snapshot},
};

/// Endings of the names of figures: of the known time, with unknown time in the cheapest and in the dearest states.
const ENDINGS: [&str; 3] = ["", ".min", ".max"];

/// Energies in the order of [`ENDINGS`].
type Range = [f64; 3];

/// Work that energy was spent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A layer and phase, over all processes.
    Phase(Tag),
    /// Threads of traced processes, outside of sections.
    Unmarked,
    /// Everything else: other processes, idle CPUs, wake-ups.
    Rest,
}

impl Part {
    fn name(self) -> String {
        match self {
            Self::Phase(tag) => tag.to_string(),
            Self::Unmarked => UNMARKED_NAME.into(),
            Self::Rest => "rest".into(),
        }
    }
}

/// Runs of which the energy can be compared.
struct Energies<'a> {
    rows: Vec<&'a EnergyRow>,
    /// Divisors of sums, one a run.
    units: &'a [Option<f64>],
    unit: Unit,
    is_incomplete: bool,
}

/// Returns the energy of all CPUs, of each cluster, and of each layer and phase; adds a note with the reason where some of it
/// cannot be compared. `units` are the divisors of sums, one a run.
pub(super) fn metrics(
    runs: &[&Snapshot],
    names: &[&str],
    units: &[Option<f64>],
    notes: &mut Vec<String>,
) -> Vec<Metric> {
    if runs.iter().all(|run| run.energy.is_none()) {
        return Vec::new();
    }
    let energies = match Energies::of(runs, names, units) {
        Ok(energies) => energies,
        Err(reason) => {
            notes.push(format!("energy is not compared: {reason}"));
            return Vec::new();
        }
    };
    let mut metrics = energies.clusters();
    match energies.phases(names) {
        Ok(phases) => metrics.extend(phases),
        Err(reason) => notes.push(format!("energy of phases is not compared: {reason}")),
    }
    metrics
}

impl<'a> Energies<'a> {
    /// Takes the energies of all runs; fails with the reason why they cannot be compared.
    fn of(runs: &[&'a Snapshot], names: &[&str], units: &'a [Option<f64>]) -> Result<Self, String> {
        same(runs, names, "CPUs", cpus)?;
        same(runs, names, "energy models", |run| {
            run.energy.as_ref().map_or_else(|| "none".into(), |energy| file_name(&energy.model).to_owned())
        })?;
        let rows: Vec<&EnergyRow> = runs.iter().filter_map(|run| run.energy.as_ref()).collect();
        let first = rows.first().filter(|_| rows.len() == runs.len());
        let first = first.ok_or("a run has no energy model")?;
        if rows.iter().any(|energy| energy.unit != first.unit) {
            return Err("their models have different units".into());
        }
        Ok(Self {
            unit: first.unit.into(),
            is_incomplete: runs.iter().any(|run| run.loss.makes_incomplete("energy")),
            rows,
            units,
        })
    }

    /// Returns the energy of all CPUs, and of each cluster.
    fn clusters(&self) -> Vec<Metric> {
        let total = |all: &EnergyRow| Some([all.total, all.total_min, all.total_max]);
        let mut metrics = self.figures("energy", Family::Others, total);
        for cluster in self.rows.first().into_iter().flat_map(|first| &first.clusters) {
            let subject = format!("cluster.{}.energy", cluster.cluster);
            metrics.extend(self.figures(&subject, Family::Others, |all| {
                let row = all.clusters.iter().find(|row| row.cluster == cluster.cluster)?;
                Some([row.total, row.total_min, row.total_max])
            }));
        }
        metrics
    }

    /// Returns the energy of each layer and phase, and of all else, where context switches divide it; fails with the reason
    /// where they do so in some runs only.
    fn phases(&self, names: &[&str]) -> Result<Vec<Metric>, String> {
        let parts: Vec<BTreeMap<Part, Range>> = self.rows.iter().map(|energy| parts(energy)).collect();
        let keys: BTreeSet<Part> = parts.iter().flat_map(BTreeMap::keys).copied().collect();
        let undivided = parts.iter().position(BTreeMap::is_empty).filter(|_| !keys.is_empty());
        if let Some(run) = undivided {
            return Err(format!("there are no context switches in {}, which would divide it", names[run]));
        }
        let mut metrics = Vec::new();
        for key in keys {
            // All else takes what other processes do: it is not enough for a verdict.
            let family = if matches!(key, Part::Phase(_)) { Family::Others } else { Family::None };
            let mut runs = parts.iter();
            // What a run has not done took nothing.
            let of_run = |_: &EnergyRow| Some(runs.next()?.get(&key).copied().unwrap_or_default());
            metrics.extend(self.figures(&format!("{}.energy", key.name()), family, of_run));
        }
        Ok(metrics)
    }

    /// Returns the figures of an energy, which is asked for run by run.
    fn figures(
        &self,
        subject: &str,
        family: Family,
        of_run: impl FnMut(&EnergyRow) -> Option<Range>,
    ) -> Vec<Metric> {
        let found: Vec<Option<Range>> = self.rows.iter().copied().map(of_run).collect();
        let figure = |(place, ending): (usize, &str)| {
            let values = found.iter().zip(self.units).map(|(range, unit)| Some((*range)?[place] / (*unit)?));
            Metric {
                name: format!("{subject}{ending}"),
                subject: Subject::Energy,
                unit: self.unit,
                family: if place == 0 { family } else { Family::None },
                is_incomplete: self.is_incomplete,
                values: values.collect(),
            }
        };
        ENDINGS.into_iter().enumerate().map(figure).collect()
    }
}

/// Returns the energy by what it was spent for; nothing without context switches.
fn parts(energy: &EnergyRow) -> BTreeMap<Part, Range> {
    let mut sums: BTreeMap<Part, Range> = BTreeMap::new();
    for row in &energy.phases {
        let part = match (row.pid, row.layer.zip(row.phase)) {
            (None, _) => Part::Rest,
            (Some(_), None) => Part::Unmarked,
            (Some(_), Some((layer, phase))) => Part::Phase(Tag::new(layer, phase)),
        };
        let more = [row.energy.total, row.energy.total_min, row.energy.total_max];
        for (sum, more) in sums.entry(part).or_default().iter_mut().zip(more) {
            *sum += more;
        }
    }
    sums
}

/// Returns the last part of a path: where a model lay does not matter.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
