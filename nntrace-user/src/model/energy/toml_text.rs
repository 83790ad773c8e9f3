//! A model as text in our TOML form.

use std::fmt::Write as _;

use super::{
    model::{ClusterModel, Cost, EnergyModel, EnergyUnit, PowerUnit},
    template::quoted,
};
use crate::model::cpu_list;

/// Returns the text of a model, which is read back as the same.
#[must_use]
pub(crate) fn to_toml(model: &EnergyModel) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |line: &str| _ = writeln!(text, "{line}");
    let units = [
        model.unit.map(|unit| ("unit", PowerUnit::symbol(unit))),
        model.energy_unit.map(|unit| ("energy_unit", EnergyUnit::symbol(unit))),
    ];
    for (key, symbol) in units.into_iter().flatten() {
        line(&format!("{key} = \"{symbol}\""));
    }
    for cluster in &model.clusters {
        cluster_lines(cluster, &mut line);
    }
    text
}

fn cluster_lines(cluster: &ClusterModel, line: &mut impl FnMut(&str)) {
    line("\n[[cluster]]");
    line(&format!("name = {}", quoted(&cluster.name)));
    if let Some(cpus) = &cluster.cpus {
        line(&format!("cpus = \"{}\"", cpu_list::format(cpus)));
    }
    line("opps = [");
    for state in &cluster.p_states {
        let frequency = if state.in_mhz {
            format!("mhz = {}", state.khz / 1_000)
        } else {
            format!("khz = {}", state.khz)
        };
        line(&format!("  {{ {frequency}, {} }},", cost(&state.power)));
    }
    line("]\nidle = [");
    for state in &cluster.idle {
        let entry =
            (state.entry != Cost::default()).then(|| format!(", entry = {{ {} }}", cost(&state.entry)));
        let (name, power) = (quoted(&state.name), cost(&state.power));
        line(&format!("  {{ name = {name}, {power}{} }},", entry.unwrap_or_default()));
    }
    line("]");
    if cluster.wakeup != Cost::default() {
        line(&format!("wakeup = {{ {} }}", cost(&cluster.wakeup)));
    }
}

fn cost(cost: &Cost) -> String {
    format!("cluster = {}, core = {}", cost.cluster, cost.core)
}
