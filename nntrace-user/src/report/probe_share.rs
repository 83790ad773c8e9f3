//! Share of the probes on engines in the time that they measure.

use super::{number_format, snapshot::Snapshot};

/// Share from which on the user is warned.
const TOO_MUCH: f64 = 0.05;

/// Returns the share of the probes in the time in sections, if it is too much; `None` also where it is not known.
#[must_use]
pub fn excessive(snapshot: &Snapshot) -> Option<f64> {
    let calls = snapshot.overhead.engine_calls?;
    let cost = calls.saturating_mul(snapshot.overhead.ns_per_engine_call?);
    let inside: u64 = snapshot.phases.iter().map(|row| row.exclusive_ns).sum();
    let share = (inside > 0).then(|| (cost as f64 / inside as f64).min(1.0));
    share.filter(|&share| share > TOO_MUCH)
}

/// Returns a warning where the probes take too much of the time, and what to leave out.
#[must_use]
pub fn warning(snapshot: &Snapshot) -> Option<String> {
    let share = excessive(snapshot)?;
    let calls = number_format::count(snapshot.overhead.engine_calls?);
    let each = number_format::duration_ns(snapshot.overhead.ns_per_engine_call?);
    let most = snapshot.functions.iter().max_by_key(|row| row.count).map(|row| {
        let (layer, phase) = (row.layer.code(), row.phase.code());
        format!("; mostly {layer}_{phase} {}", row.name)
    });
    Some(format!(
        "the probes take about {:.0}% of the time in sections: {calls} calls, {each} each as measured at the start{}; \
         --engine-level run leaves out operators, and a copy of the map whatever its lines do not name",
        share * 100.0,
        most.unwrap_or_default(),
    ))
}
