//! Figures of measured rails: each on its own, as rails overlap, and beside energy by a model.

use std::collections::BTreeSet;

use super::metric::{Family, Metric, Subject, Unit};
use crate::{
    model::plurals::counted,
    report::snapshot::{RailRow, Snapshot},
};

/// Returns the energy and the mean power of each rail that any run has; adds notes on what runs lack. `units` are the divisors
/// of sums, one a run.
pub(super) fn metrics(
    runs: &[&Snapshot],
    names: &[&str],
    units: &[Option<f64>],
    notes: &mut Vec<String>,
) -> Vec<Metric> {
    let paths: BTreeSet<String> = runs.iter().flat_map(|run| measured(run)).map(RailRow::path).collect();
    let mut metrics = Vec::new();
    let (mut missing, mut gaps) = (Vec::new(), Vec::new());
    for path in &paths {
        let rows: Vec<Option<&RailRow>> =
            runs.iter().map(|run| measured(run).find(|rail| rail.path() == *path)).collect();
        let place = |run: Option<usize>| run.map(|run| format!("{path} in {}", names[run]));
        missing.extend(place(rows.iter().position(Option::is_none)));
        let gap = place(rows.iter().position(|rail| rail.is_some_and(|rail| rail.gaps > 0)));
        let energies = rows.iter().zip(units).map(|(rail, unit)| Some((*rail)?.joules() / (*unit)?));
        let metric = |figure, unit, family, is_incomplete, values| Metric {
            name: format!("rail.{path}.{figure}"),
            subject: Subject::Rail,
            unit,
            family,
            is_incomplete,
            values,
        };
        metrics.push(metric("energy", Unit::Joule, Family::Others, gap.is_some(), energies.collect()));
        // Of the time that is known: no gap is in it.
        let powers = rows.iter().map(|rail| rail.and_then(RailRow::mean_watts));
        metrics.push(metric("power", Unit::Watt, Family::None, false, powers.collect()));
        gaps.extend(gap);
    }
    notes.extend(note("rails are not measured in every run", &missing));
    notes.extend(note("readings of rails are missing, and figures with ~ lack them", &gaps));
    metrics
}

/// Returns the rails of a run of which some energy is known: after two readings.
fn measured(run: &Snapshot) -> impl Iterator<Item = &RailRow> {
    run.rails.iter().flat_map(|rails| &rails.rails).filter(|rail| rail.known_ns() > 0)
}

/// Returns a note on such places, the first of which is named.
fn note(text: &str, places: &[String]) -> Option<String> {
    let (first, rest) = places.split_first()?;
    let others = match rest.len() {
        0 => String::new(),
        more => format!(" and {}", counted(more as u64, "other rail")),
    };
    Some(format!("{text}: {first}{others}"))
}
